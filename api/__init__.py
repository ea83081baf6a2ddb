"""Citeloom's Python API: everything `citeloom` exports, by topic."""
