"""What a question is about: routing, papers and authors it names."""
