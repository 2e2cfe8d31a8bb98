"""Literals and names as the native language writes them."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import Final

from fieldfare.events.values import Scalar, format_timestamp

KEYWORDS: Final = frozenset({
    "ALL", "AND", "ANY", "BETWEEN", "CONTAINS", "ENDS", "EXISTS", "FALSE", "HAS", "ILIKE", "IN", "INFINITY", "IS",
    "LIKE", "NOT", "NULL", "OR", "STARTS", "TRUE",
})  # fmt: skip
"""words that need quotes as names of fields"""
MAX_DIGITS: Final = 1000
"""digits of an integer; Python reads some thousands, and a float is infinite long before"""
_TOO_LARGE: Final = 10**MAX_DIGITS
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def literal(value: Scalar) -> str:
    r"""Return a value as the native language writes values.

    >>> literal("it's"), literal(None), literal(b"\x01")
    ("'it''s'", 'NULL', "X'01'")
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{format_timestamp(value)}'"
    if isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, float) and not math.isfinite(value):
        return "(INFINITY - INFINITY)" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    return repr(value)


def writable(value: Scalar) -> Scalar:
    """Return the value if the language can write and read the value; ValueError if not."""
    if isinstance(value, int) and not -_TOO_LARGE < value < _TOO_LARGE:
        raise ValueError("the number is out of range")
    if isinstance(value, str) and not value.isascii():
        value.encode()  # a lone surrogate, which no event can hold, is a UnicodeEncodeError
    return value


def name(path: str) -> str:
    """Return the dotted path of a field, quoted where needed.

    >>> name("data.user.id"), name("unit price"), name("order")
    ('data.user.id', '"unit price"', 'order')
    """
    steps = path.split(".")
    if all(_PLAIN_NAME.fullmatch(step) and step.upper() not in KEYWORDS for step in steps):
        return path
    return '"' + path.replace('"', '""') + '"'
