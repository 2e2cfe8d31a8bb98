"""Random runs of simulated networks, judged by the trace checker."""
