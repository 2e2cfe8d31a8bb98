"""Random runs of brokers that forward by tags: copies of a tree that are late, optimizers that crash."""
