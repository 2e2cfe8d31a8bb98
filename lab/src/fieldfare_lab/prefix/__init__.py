"""Experiments X1 to X7 on forwarding by prefix: those of the paper, run again, and those that the paper left open."""
