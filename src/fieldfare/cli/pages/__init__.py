"""Web pages that are single files and load nothing from elsewhere."""
