"""Persistence; import from submodules: the package loads neither Chroma nor numpy, so that `--help` stays fast."""
