"""The store of an index: filters as entries in flat segments."""
