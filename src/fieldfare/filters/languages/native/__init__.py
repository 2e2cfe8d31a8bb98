"""The native filter language: SQL-like conditions over the fields of an event."""
