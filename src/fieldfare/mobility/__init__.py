"""Clients that move: sessions, handover, publishers on their way, event channels, filters that depend on a place."""
