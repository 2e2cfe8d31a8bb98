"""The benchmark of a running node: a workload with known answers, for Fieldfare and for other servers."""
