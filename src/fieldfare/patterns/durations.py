"""Durations as people write them, in microseconds: `90 seconds`, `1 hour`, `1h 30min`, `500ms`."""

from __future__ import annotations

import re
from typing import Final

UNITS: Final[dict[str, int]] = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}
"""Short names of the units, from the smallest."""
_LONG: Final = {
    "us": "microseconds microsecond µs",
    "ms": "milliseconds millisecond msec",
    "s": "seconds second sec secs",
    "min": "minutes minute mins m",
    "h": "hours hour hr hrs",
    "d": "days day",
}
_FACTORS: Final = {name: UNITS[unit] for unit, names in _LONG.items() for name in [unit, *names.split()]} | {
    "week": 7 * UNITS["d"],
    "weeks": 7 * UNITS["d"],
}
NUMBER: Final = r"\d+(?:\.\d+)?"
UNIT: Final = rf"(?:{'|'.join(sorted(map(re.escape, _FACTORS), key=len, reverse=True))})(?![\w.])"
PATTERN: Final = rf"{NUMBER}\s*{UNIT}(?:\s*{NUMBER}\s*{UNIT})*"
"""Regular expression of a duration with units."""
_PART: Final = re.compile(rf"\s*({NUMBER})\s*({UNIT})?", re.IGNORECASE)


def parse_duration(text: str) -> int:
    """Return a duration in microseconds; a number without a unit counts seconds.

    >>> parse_duration("1h 30min") == parse_duration("5400") == parse_duration("1.5 hours")
    True
    """
    total, place = 0, 0
    while place < len(text.rstrip()):
        part = _PART.match(text, place)
        if part is None or (part[2] is None and (place or part.end() < len(text.rstrip()))):
            raise ValueError(f"{text.strip()[:40]!r} is no duration such as '90 seconds', '1h 30min' or '500ms'")
        total += round(float(part[1]) * _FACTORS[(part[2] or "s").lower()])
        place = part.end()
    if not total:
        raise ValueError("a duration must be longer than nothing")
    return total


def format_duration(microseconds: int) -> str:
    """Return a duration in short units, without spaces.

    >>> format_duration(5_400_500_000), format_duration(86_400_000_000)
    ('1h30min500ms', '1d')
    """
    parts = []
    for unit, factor in reversed(UNITS.items()):
        count, microseconds = divmod(microseconds, factor)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
