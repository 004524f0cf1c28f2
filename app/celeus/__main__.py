"""`python -m celeus`: the command line."""

from celeus.cli import main

if __name__ == "__main__":
    main()
