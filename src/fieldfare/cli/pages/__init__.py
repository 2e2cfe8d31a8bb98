"""Web pages in one file, with nothing from elsewhere."""
