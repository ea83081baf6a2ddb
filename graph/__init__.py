"""The graphs that write sections, papers and answers: their state, nodes and wiring."""
