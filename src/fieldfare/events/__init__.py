"""Events, their typed values, and the codecs for JSON, CloudEvents, MessagePack and Arrow."""

from fieldfare.events.event import Event, fields_of, freeze
from fieldfare.events.limits import DEFAULT_LIMITS, EventError, Limits
from fieldfare.events.values import MISSING, Interval, Kind, Value, format_timestamp, kind_of, parse_timestamp

__all__ = [
    "DEFAULT_LIMITS",
    "MISSING",
    "Event",
    "EventError",
    "Interval",
    "Kind",
    "Limits",
    "Value",
    "fields_of",
    "format_timestamp",
    "freeze",
    "kind_of",
    "parse_timestamp",
]
