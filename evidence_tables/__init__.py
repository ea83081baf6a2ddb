"""Evidence tables: rows are papers or their studies, and every cell opens to the words it rests on."""
