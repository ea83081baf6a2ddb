"""What services know of the papers: clients, matching, retractions, and adding papers by identifier."""
