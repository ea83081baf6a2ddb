"""Files of a result: formats, evidence report, names."""
