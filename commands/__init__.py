"""The commands, one module per group; only these and `cli.py` print."""
