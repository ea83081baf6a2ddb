"""Zotero's items into the library: read from its local API or its database, never written to."""
