"""Structures of filters ordered by covering: the poset and the forests of the literature, and the naive oracle."""
