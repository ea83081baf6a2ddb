"""Web pages, rendered on the server and updated by small scripts that use the API."""
