"""Messages as MessagePack, for links, logs and snapshots. `Connect` and `Disconnect` are never on a wire.

Events are written by their own codec, and filters as text: what a neighbour of another version wrote can be read, and a
dump can be read by people.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.routing import messages as m
from fieldfare.routing import pastry
from fieldfare.routing.messages import Message
from fieldfare.routing.named import NamedFilter

VERSION: Final = 1
"""of the wire form; nodes say it when they meet, and refuse another one"""


def encode(message: Message) -> bytes:
    """A message as MessagePack.

    >>> decode(encode(m.Subscribe("cheap", parse("price < 10"))))
    Subscribe(id='cheap', filter=parse('price < 10'))
    """
    return _ENCODER.encode(message)


def decode(data: bytes) -> Message:
    """The message that was encoded; ValueError if there is none in the data."""
    try:
        message: Message = _DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"no message: {error}") from None
    return message


def encode_forward(
    event: bytes, publisher: str, sequence: int, *, by: str, source: str, expires: float, replaces: str, tag: bytes
) -> bytes:
    """A `Forward` whose event is in its written form already."""
    forward = {"is": "Forward", "event": event, "publisher": publisher, "sequence": sequence}
    rest = {"by": by, "source": source, "expires": expires, "replaces": replaces, "tag": tag}
    return msgspec.msgpack.encode({**forward, **rest})


def to_wire(value: object) -> object:
    """How msgspec is to write events and filters."""
    match value:
        case Event():
            return msgpack.encode(value)
        case NamedFilter():
            return [value.name, str(value)]
        case Filter():
            return str(value)
    raise TypeError(f"{type(value).__name__} has no place in a message")


def from_wire(type: type, value: Any) -> object:
    """How it is to read them."""
    if type is Event:
        return msgpack.decode(value)
    match value:
        case str():
            return _filter(value)
        case [str() as name, str() as text]:
            return NamedFilter(name, _filter(text))
    raise ValueError("a filter is a text, or a name and a text")


@lru_cache(maxsize=10_000)
def _filter(text: str) -> Filter:
    """Neighbours often say the same filter again."""
    return parse(text)


_CLIENTS: Final = m.Publish | m.Subscribe | m.Unsubscribe | m.Advertise | m.Unadvertise | m.Leave | m.Deliver | m.Refuse
_BROKERS: Final = m.Forward | m.Tell | m.Parcel | m.Ask | m.Copy | m.Links | m.Wants | m.Batch | m.Aside
_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=to_wire)
_DECODER: Final = msgspec.msgpack.Decoder(_CLIENTS | _BROKERS | pastry.OverlayMessage, dec_hook=from_wire)
