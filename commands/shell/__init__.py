"""The interactive shell of `chat`, which remembers results between lines."""
