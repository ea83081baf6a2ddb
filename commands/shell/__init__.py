"""The shell that `chat` opens: lines in, answers out, and what it remembers between them."""
