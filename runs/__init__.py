"""Starts, resumes, finishes and saves runs of sections, papers, questions and conversations."""
