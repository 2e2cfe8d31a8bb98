"""The event table: the columns that events have in bulk, and how raw records become rows."""
