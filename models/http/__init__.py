"""Access to endpoints: clients, streaming, response validation, retries, and errors that name the remedy."""
