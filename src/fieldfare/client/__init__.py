"""Talking to a node: publish, subscribe, come back."""
