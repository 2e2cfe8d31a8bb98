"""Cells of tables without types, such as CSV: the type of a cell follows from the text.

12 and 1.5 are numbers, true is a bool, an RFC 3339 timestamp is a timestamp, and all else a string; 007 is a string.
"""

from __future__ import annotations

import re
from typing import Final

from fieldfare.events.limits import EventError
from fieldfare.events.values import parse_timestamp

_INT: Final = re.compile(r"-?(0|[1-9][0-9]*)")
_FLOAT: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BOOLS: Final = {"true": True, "false": False}
_MOST_DIGITS: Final = 20
"""Digits of an integer of 64 bits, with the sign."""


def typed(cell: str) -> object:
    """Return the value in the text of a cell.

    >>> typed("12"), typed("1.5"), typed("true"), typed("007"), typed("2026-11-15T09:30:00Z").year
    (12, 1.5, True, '007', 2026)
    """
    if cell.lower() in _BOOLS:
        return _BOOLS[cell.lower()]
    if _INT.fullmatch(cell):
        if len(cell) > _MOST_DIGITS:
            raise EventError("", f"the integer {cell[:20]}… does not fit in 64 bits")
        return int(cell)
    if _FLOAT.fullmatch(cell):
        number = float(cell)
        if number in (float("inf"), float("-inf")):
            raise EventError("", f"the number {cell[:20]} is out of range")
        return number
    try:
        return parse_timestamp(cell)
    except ValueError:
        return cell
