"""Merging: several filters become one, for one neighbour, for one interface, for the roots of a table, or jointly."""
