"""The patterns of a node's settings, and the bounds that all patterns have."""

from __future__ import annotations

from fieldfare.node.config.settings import Config, Limits
from fieldfare.patterns import Pattern, parse_pattern
from fieldfare.patterns.bounds import Bounds, check


def bounds_of(limits: Limits) -> Bounds:
    """Return the bounds of patterns that the settings give."""
    most = limits.pattern_states, limits.pattern_instances, limits.pattern_events, limits.pattern_seconds
    return Bounds(*most)


def texts_of(config: Config) -> dict[str, str]:
    """Return the patterns of the settings by name."""
    return {name: one.text for name, one in config.patterns.items()}


def placements_of(config: Config) -> dict[str, str]:
    """Return the placement policies of the settings, by name of the pattern; without those that stand here."""
    return {name: one.placement for name, one in config.patterns.items() if one.placement != "here"}


def read(text: str, limits: Limits) -> Pattern:
    """Return the pattern of a text within the limits; a ValueError names the mistake."""
    if len(text) > limits.filter_chars:
        raise ValueError(f"the pattern has {len(text)} characters, more than the limit of {limits.filter_chars}")
    pattern = parse_pattern(text)
    check(pattern, bounds_of(limits))
    return pattern


def problem_of(name: str, text: str, limits: Limits) -> str:
    """Return the reason why a pattern of the settings cannot stand in a node; empty if it can."""
    if not name or name.startswith("ce:"):
        return "the name of a pattern does not begin with ce:"
    try:
        read(text, limits)
    except ValueError as error:
        return str(error)
    return ""
