"""Ingestion of papers into the library: find sources, plan, embed, index, repair."""
