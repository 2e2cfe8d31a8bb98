"""What moving costs: the experiments of the literature, run again."""
