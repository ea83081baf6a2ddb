"""Syncs Zotero's items into the library, reading its local API or database and never writing to them."""
