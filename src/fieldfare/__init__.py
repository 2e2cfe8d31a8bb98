"""Fieldfare: content-based publish/subscribe. Events fare by their fields.

>>> import fieldfare as ff
>>> ff.parse("price < 10").covers(ff.parse("price < 5"))
True
"""

from fieldfare.events import MISSING, Event, EventError, Interval, Limits
from fieldfare.filters import Filter, FilterDocumentError, FilterSyntaxError, FilterTooComplex, ValueSet, parse
from fieldfare.filters.functions import register as function
from fieldfare.filters.languages.python import call, field

__all__ = [
    "MISSING",
    "Event",
    "EventError",
    "Filter",
    "FilterDocumentError",
    "FilterSyntaxError",
    "FilterTooComplex",
    "Interval",
    "Limits",
    "ValueSet",
    "call",
    "field",
    "function",
    "parse",
]
