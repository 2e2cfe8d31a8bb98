"""The benchmark of a running node: one workload with known answers, for Fieldfare and for servers that others run."""
