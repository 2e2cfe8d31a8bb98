"""Fieldfare: content-based publish/subscribe. Events fare by their fields.

>>> import fieldfare as ff
>>> ff.parse("price < 10").covers(ff.parse("price < 5"))
True
"""

from typing import TYPE_CHECKING

from fieldfare.events import MISSING, Event, EventError, Interval, Limits
from fieldfare.filters import Filter, FilterDocumentError, FilterSyntaxError, FilterTooComplex, ValueSet, parse
from fieldfare.filters.functions import register as function
from fieldfare.filters.languages.python import call, field

if TYPE_CHECKING:
    from fieldfare.matching.index import Index

__all__ = [
    "MISSING",
    "Event",
    "EventError",
    "Filter",
    "FilterDocumentError",
    "FilterSyntaxError",
    "FilterTooComplex",
    "Index",
    "Interval",
    "Limits",
    "ValueSet",
    "call",
    "field",
    "function",
    "parse",
]


def __getattr__(name: str) -> object:
    """`Index` when it is first asked for: it needs Arrow and NumPy, which take longer to import than all the rest."""
    if name == "Index":
        from fieldfare.matching.index import Index  # noqa: PLC0415

        return Index
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
