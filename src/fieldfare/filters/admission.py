"""Admission: the one place where a filter that a stranger wrote becomes a `Filter`.

A filter that is let in is stored, and sent to other nodes, as text of the native language. So it is let in only if that
text can be read back to the same filter, and if neither the filter nor its text is larger than the limits. The work to
find that out is bounded by a budget of steps; nothing here looks at a clock.
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
    """How large a filter may be that is let in, and how much work it may make."""

    text: int = 10_000
    """characters, as it was written"""
    normal: int = 40_000
    """characters of its text in normal form, which is stored and sent on"""
    branches: int = 256
    """alternatives in normal form"""
    steps: int = 100_000
    """of work to understand it, of about a microsecond each"""


LIMITS: Final = Limits()
_ON_THE_WAY: Final = 2
"""so many times larger a filter may be before it is in normal form"""


def admit(written: object, limits: Limits = LIMITS) -> Filter:
    """The filter that a client wrote, or a ValueError that says why it is not let in.

    Pure: it may run in a thread or in another process.

    Args:
        written: text of the native language; or, as a list or an object of decoded JSON, a document of the CloudEvents
            Subscriptions API; or a filter that was computed from others, such as what a role leaves of a wish.
        limits: how large it may be.

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
    """Refuse what is too long, before anybody looks at it."""
    if not isinstance(written, Filter) and _length(written, limits.text) > limits.text:
        raise FilterTooComplex(f"the filter has more than {limits.text} characters")


def _length(written: object, most: int) -> int:
    """The characters of a text, or of all texts in a document, each counted with the signs around it."""
    total, parts = 0, [written]
    while parts and total <= most:
        part = parts.pop()
        total += len(part) + 2 if isinstance(part, str) else 2
        if isinstance(part, Mapping):
            parts += [*part.keys(), *part.values()]
        elif isinstance(part, (list, tuple)):
            parts += part
    return total - 2  # what surrounds the whole does not count


def _expect_read_back(filter: Filter, text: str) -> None:
    """Refuse a filter of which the text is not the filter again, or cannot be sent."""
    try:
        text.encode()
        same = translation.parse(text) == filter
    except FilterOverBudget:
        raise
    except (FilterTooComplex, FilterSyntaxError, UnicodeEncodeError):
        same = False
    if not same:
        raise FilterTooComplex(f"the filter has a normal form that cannot be read back: {text[:200]!r}")
