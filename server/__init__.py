"""The HTTP server: web pages, the API under `/api/v1`, and access for chat programs and agents."""
