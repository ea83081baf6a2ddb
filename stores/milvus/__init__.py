"""Vectors and words of a library in Milvus; PostgreSQL keeps the data from which they are built."""
