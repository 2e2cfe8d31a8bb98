"""The languages that filters are written in. All of them lead to the same `Filter`."""
