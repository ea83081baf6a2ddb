"""Citeloom from Python: what `citeloom` exports, one module for each part of it."""
