"""Access to endpoints: clients, streaming, validation of answers, retries, errors that name the remedy."""
