"""`python -m fieldfare` is `fieldfare`."""

from fieldfare.cli import main

if __name__ == "__main__":
    main()
