"""Metadata services: clients, matching, retractions, and adding papers by identifier."""
