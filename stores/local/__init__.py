"""A home in a folder: Chroma for vectors, tantivy for words, SQLite for everything else."""
