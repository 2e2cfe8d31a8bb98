"""The strategies of routing, compared in simulated networks."""
