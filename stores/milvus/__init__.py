"""Vectors and words of a library in Milvus, beside PostgreSQL, which keeps everything they are made from."""
