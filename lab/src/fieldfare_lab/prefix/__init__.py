"""What forwarding by prefix costs and saves: the experiments of the paper, run again, and those it left open."""
