"""Events in bulk, on Spark: the same events, filters and engine as in a node. Needs `fieldfare[spark]`."""
