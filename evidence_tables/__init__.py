"""Evidence tables: rows are papers or their studies, and every cell keeps the words it rests on."""
