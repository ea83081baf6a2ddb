"""Embedding models, bundled or behind an endpoint, and the cross-encoder."""
