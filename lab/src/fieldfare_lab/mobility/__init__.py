"""Experiments on moving clients and publishers: the protocols of the literature and Fieldfare's, and films."""
