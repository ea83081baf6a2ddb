"""Begin, resume, finish and save runs of sections, papers, questions and conversations."""
