"""The nodes of the graphs; each function has the name of its node."""
