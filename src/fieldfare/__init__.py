"""Fieldfare: content-based publish/subscribe. Events fare by their fields.

>>> import fieldfare as ff
>>> ff.parse("price < 10").covers(ff.parse("price < 5"))
True
"""

from typing import TYPE_CHECKING

from fieldfare.events import MISSING, Event, EventError, Interval, Limits
from fieldfare.exports import lazy
from fieldfare.filters import Filter, FilterDocumentError, FilterSyntaxError, FilterTooComplex, ValueSet, parse
from fieldfare.filters.functions import register as function
from fieldfare.filters.languages.python import call, field

if TYPE_CHECKING:
    from fieldfare.client.client import connect
    from fieldfare.client.sync import connect_sync
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
    "connect",
    "connect_sync",
    "field",
    "function",
    "parse",
]


__getattr__ = lazy(
    __name__, {"client.client": ("connect",), "client.sync": ("connect_sync",), "matching.index": ("Index",)}
)
