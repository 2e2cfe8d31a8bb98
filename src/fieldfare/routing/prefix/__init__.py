"""Prefix forwarding: an event meets filters once, where it enters; later brokers forward it by a small tag."""
