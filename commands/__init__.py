"""The commands: one module for each group; only they and `cli.py` print."""
