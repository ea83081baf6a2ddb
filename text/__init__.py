"""Plain text utilities: sentences, words, normalization. No knowledge of papers."""
