"""Persistence: the library, the home folder, checkpoints and the registry of runs.

Import from the submodules: this package itself loads neither Chroma nor numpy, so that `--help` stays fast.
"""
