"""Real nodes in processes of their own: killed, cut off, under load, and in network namespaces."""
