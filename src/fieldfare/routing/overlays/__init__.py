"""Overlays: trees in networks with cycles, and rendezvous routing over a ring of brokers."""
