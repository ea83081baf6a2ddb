"""Embedding models, bundled or remote, and the cross-encoder."""
