"""Checks of users' texts: sentences, the passages that bear on them, and verdicts with the words that decide them."""
