"""Patterns on Spark: composite events of a history, and of a stream. `detect` is in `operator`."""
