"""`python -m citeloom`: the command line."""

from citeloom.cli import main

if __name__ == "__main__":
    main()
