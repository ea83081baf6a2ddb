"""Papers into the library: finding sources, planning, embedding, indexing, repair."""
