"""Experiments: what is measured and drawn rather than used."""
