"""The files of a result: formats, evidence report, file names."""
