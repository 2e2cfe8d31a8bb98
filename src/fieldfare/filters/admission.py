"""Admission: the only place where a filter from an untrusted client becomes a `Filter`.

An admitted filter is stored, and sent to other nodes, as text of the native language. Admission therefore requires a
text that parses back to the same filter, and a filter and a text within the limits. A budget of steps bounds the work;
no function here reads a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fieldfare.filters import budget
from fieldfare.filters.errors import FilterOverBudget, FilterSyntaxError, FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.native import translation
from fieldfare.filters.languages.subscriptions import documents


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on the size of a filter and on the work that a filter may cause."""

    text: int = 10_000
    """characters of the filter as written"""
    normal: int = 40_000
    """characters of the text in normal form, which is stored and sent to other nodes"""
    branches: int = 256
    """alternatives in normal form"""
    steps: int = 100_000
    """steps of work to bring the filter to normal form, of about a microsecond each"""


LIMITS: Final = Limits()
_ON_THE_WAY: Final = 2
"""factor by which a filter may exceed the limit of size before normal form is reached"""


def admit(written: object, limits: Limits = LIMITS) -> Filter:
    """Return the filter that a client wrote, or raise a ValueError that gives the reason of refusal.

    The function is pure and may run in a thread or in another process.

    Args:
        written: text of the native language; a document of the CloudEvents Subscriptions API (a list or an object of
            decoded JSON); or a filter that was computed from others, such as the part of a filter that a role allows.
        limits: the limits that the filter must respect.

    >>> admit("price < 5 AND symbol = 'IBM'")
    parse("price < 5 AND symbol = 'IBM'")
    >>> admit([{"prefix": {"type": "com."}}])
    parse("type STARTS WITH 'com.'")
    """
    _expect_short(written, limits)
    with budget.within(limits.steps, _ON_THE_WAY * limits.normal):
        try:
            filter = _read(written)
            if len(filter.boxes) > limits.branches:
                raise FilterTooComplex(f"the filter has {len(filter.boxes)} alternatives, more than {limits.branches}")
            text = str(filter)
            if len(text) > limits.normal:
                raise FilterTooComplex(f"the normal form of the filter has more than {limits.normal} characters")
            _expect_read_back(filter, text)
        except RecursionError:
            raise FilterTooComplex("the filter is nested too deeply") from None
    return filter


def _read(written: object) -> Filter:
    if isinstance(written, Filter):
        return written
    return translation.parse(written) if isinstance(written, str) else documents.parse(written)


def _expect_short(written: object, limits: Limits) -> None:
    """Refuse a filter that is too long before any other work is done."""
    if not isinstance(written, Filter) and _length(written, limits.text) > limits.text:
        raise FilterTooComplex(f"the filter has more than {limits.text} characters")


def _length(written: object, most: int) -> int:
    """Count the characters of a text, or of all texts in a document; two are added for the signs around each."""
    total, parts = 0, [written]
    while parts and total <= most:
        part = parts.pop()
        total += len(part) + 2 if isinstance(part, str) else 2
        if isinstance(part, Mapping):
            parts += [*part.keys(), *part.values()]
        elif isinstance(part, (list, tuple)):
            parts += part
    return total - 2  # the signs around the whole do not count


def _expect_read_back(filter: Filter, text: str) -> None:
    """Refuse a filter whose text does not parse back to the filter, or cannot be encoded."""
    try:
        text.encode()
        same = translation.parse(text) == filter
    except FilterOverBudget:
        raise
    except (FilterTooComplex, FilterSyntaxError, UnicodeEncodeError):
        same = False
    if not same:
        raise FilterTooComplex(f"the filter has a normal form that cannot be read back: {text[:200]!r}")
