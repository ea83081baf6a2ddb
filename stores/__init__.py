"""What is remembered: the library, the home it lives in, checkpoints and the register of runs.

Import from the modules: this package loads neither Chroma nor numpy, so that `--help` stays fast.
"""
