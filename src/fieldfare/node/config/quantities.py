"""Sizes and durations as people write them: `64MB`, `7d`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

SIZES: Final[dict[str, int | Decimal]] = {
    "b": 1,
    **{unit: 1000**power for power, unit in enumerate(("kb", "mb", "gb", "tb"), 1)},
    **{unit: 1024**power for power, unit in enumerate(("kib", "mib", "gib", "tib"), 1)},
}
"""bytes of each unit, in lower case"""
TIMES: Final[dict[str, int | Decimal]] = {
    "ms": Decimal("0.001"),
    "s": 1,
    "m": 60,
    "h": 3600,
    "d": 86400,
    "w": 7 * 86400,
}
"""seconds of each unit"""
_QUANTITY: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)\s*([A-Za-z]*)")


def size(text: str) -> int:
    """Return the bytes of a number with a unit: 1 MB is 1000 kB, 1 MiB is 1024 KiB; no unit means bytes.

    >>> size("64MB"), size("1 KiB"), size("512")
    (64000000, 1024, 512)
    """
    return int(_quantity(text, SIZES, "a size is a number with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, as 64MB"))


def duration(text: str) -> float:
    """Return the seconds of a number with a unit; no unit means seconds.

    >>> duration("7d"), duration("1.5h"), duration("250 ms"), duration("30")
    (604800.0, 5400.0, 0.25, 30.0)
    """
    return float(_quantity(text, TIMES, "a duration is a number with ms, s, m, h, d or w, as 90s or 7d"))


def _quantity(text: str, units: Mapping[str, int | Decimal], expected: str) -> Decimal:
    found = _QUANTITY.fullmatch(text.strip())
    unit = found[2].lower() if found else ""
    if found is None or (unit and unit not in units):
        raise ValueError(f"{expected}; not {text!r}")
    return Decimal(found[1]) * (units[unit] if unit else 1)
