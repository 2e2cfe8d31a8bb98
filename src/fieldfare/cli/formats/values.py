"""Values as text on a terminal."""

from __future__ import annotations

import json

from fieldfare.events import MISSING, Interval
from fieldfare.events.tags import tag
from fieldfare.filters.expressions import UNCERTAIN
from fieldfare.filters.literals import literal


def printable(text: str) -> str:
    """Return the text with a dot for each control character, which could move the cursor or do worse."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "·" for char in text)


def shown(value: object) -> str:
    """Return a value as a filter would write it; lists and objects as JSON.

    >>> shown("IBM"), shown(Interval(100, None)), shown((1, 2)), shown(MISSING)
    ("'IBM'", '[100, ∞)', '[1, 2]', 'missing')
    """
    if value is MISSING:
        return "missing"
    if value is UNCERTAIN:
        return "uncertain, being computed from an interval"
    if isinstance(value, Interval):
        low = "(-∞" if value.low is None else value.closed[0] + literal(value.low)
        high = "∞)" if value.high is None else literal(value.high) + value.closed[1]
        return f"{low}, {high}"
    if isinstance(value, tuple | dict):
        return printable(json.dumps(tag(value), ensure_ascii=False))
    return printable(literal(value))  # type: ignore[arg-type]  # all other values are scalars
