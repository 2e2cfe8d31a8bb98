"""The benchmark of matching: workloads with known answers, contenders, a fair clock, a table of results."""
