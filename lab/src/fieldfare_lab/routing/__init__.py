"""Experiments R1 to R9: the routing strategies, compared in simulated networks."""
