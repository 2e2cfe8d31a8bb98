"""A running broker: what survives, and what carries it."""
