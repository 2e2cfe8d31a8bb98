"""Fieldfare: content-based publish/subscribe. Events fare by their fields.

>>> import fieldfare as ff
>>> ff.parse("price < 10").covers(ff.parse("price < 5"))
True
"""

from fieldfare.events import MISSING, Event, EventError, Interval, Limits
from fieldfare.filters import Filter, FilterSyntaxError, FilterTooComplex, ValueSet, parse

__all__ = [
    "MISSING",
    "Event",
    "EventError",
    "Filter",
    "FilterSyntaxError",
    "FilterTooComplex",
    "Interval",
    "Limits",
    "ValueSet",
    "parse",
]
