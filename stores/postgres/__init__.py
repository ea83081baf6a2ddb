"""The backend in PostgreSQL: library, journal, runs, conversations and checkpoints in one database."""
