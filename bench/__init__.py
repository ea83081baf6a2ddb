"""Measures the speed of Citeloom as ratios taken in one run: `python -m bench`, or `make bench`."""
