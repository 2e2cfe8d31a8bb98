"""The settings of a node."""
