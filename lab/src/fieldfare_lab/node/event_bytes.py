"""The bytes of a load's events in MessagePack: whatever does not change is encoded once, before any time is taken.

The time at which an event was due comes last in its bytes, so a client only appends eight bytes, and does not limit the
rate of a server.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import msgspec

from fieldfare.events.event import Event
from fieldfare.events.msgpack import encode
from fieldfare_lab.node.load import LoadEvent

TIME: Final = struct.Struct(">Q")


class ReceivedEvent(msgspec.Struct):
    """The two fields that a subscriber decodes; a cheap subscriber leaves more time to the server."""

    number: int
    at: int
    """time at which the event was due, in nanoseconds of the system's monotonic clock"""


def all_but_the_time(event: LoadEvent) -> bytes:
    """Return an event without the last eight bytes.

    >>> head = all_but_the_time(LoadEvent(7, {}, {"number": 7}, ()))
    >>> decode(head + TIME.pack(1 << 62))
    ReceivedEvent(number=7, at=4611686018427387904)
    """
    return encode(Event({**event.fields, "at": 1 << 62}))[: -TIME.size]


decode: Final[Callable[[bytes], ReceivedEvent]] = msgspec.msgpack.Decoder(ReceivedEvent).decode
