"""Matching events: from fields to keys, from keys to entries, and verification of the rest."""
