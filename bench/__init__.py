"""How fast Citeloom is, as ratios taken in one run: `python -m bench`, or `make bench`."""
