"""`python -m fieldfare` runs the command line program `fieldfare`."""

from fieldfare.cli import main

if __name__ == "__main__":
    main()
