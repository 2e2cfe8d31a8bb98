"""Fieldfare: content-based publish/subscribe. Events fare by their fields.

>>> import fieldfare as ff
>>> ff.parse("price < 10").covers(ff.parse("price < 5"))
True
"""

from typing import TYPE_CHECKING

from fieldfare.events import MISSING, Event, EventError, Interval, Limits
from fieldfare.extras import advice
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


def __getattr__(name: str) -> object:
    """What takes longer to import than all the rest, when it is first asked for: it needs Arrow, NumPy, WebSockets."""
    if name == "Index":
        from fieldfare.matching.index import Index  # noqa: PLC0415

        return Index
    if name in ("connect", "connect_sync"):
        try:
            from fieldfare.client import client, sync  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(advice(error) or str(error), name=error.name) from None
        return client.connect if name == "connect" else sync.connect_sync
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
