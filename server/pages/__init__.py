"""The pages for a browser, rendered here and brought up to date by small scripts that use the API."""
