"""Relations of filters: which stored filters cover a filter, are covered by a filter, or overlap a filter."""
