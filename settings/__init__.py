"""Settings: their fields and sources, addresses of databases, and which key may be sent where."""
