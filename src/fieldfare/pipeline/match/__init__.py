"""Matching on Spark: every event of a DataFrame with every subscription that matches the event."""
