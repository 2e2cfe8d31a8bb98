"""Patterns in a network: placement of detectors, their reuse, and detection under delays."""
