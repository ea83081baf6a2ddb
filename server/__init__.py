"""The HTTP server: the page, the API under `/api/v1`, and the faces for chat programs and agents."""
