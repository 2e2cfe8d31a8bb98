"""Storage of a node: the event log in segments, the rows in SQLite, and their salvage."""
