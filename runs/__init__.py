"""Starts, resumes, finishes and saves runs: sections, papers, questions and conversations."""
