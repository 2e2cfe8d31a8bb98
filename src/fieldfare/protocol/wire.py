"""Messages as MessagePack, for links, logs and snapshots. `Connect` and `Disconnect` are never on a wire.

Events are written by their own codec, and filters as text: what a neighbour of another version wrote can be read, and a
dump can be read by people.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import msgspec

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import EVERYTHING, budget, parse
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import Message
from fieldfare.protocol.overlay_messages import OverlayMessage

VERSION: Final = 2
"""of the wire form; nodes say it when they meet, and refuse another one"""
STEPS: Final = 1_000_000
"""of work to understand a neighbour's filter, about a microsecond each"""
SIZE: Final = 1 << 20
"""characters of a neighbour's filter, about; it may have merged many into one"""


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


def decode_leniently(data: bytes) -> tuple[Message, list[str]]:
    """The message that was encoded, with the texts of filters in it that cannot be read here.

    A neighbour that asks for something unreadable is taken to ask for everything: that may bring it too much, and loses
    nothing. What it no longer asks for, if that is unreadable, is left as it is, for the same reason.
    """
    try:
        return decode(data), []
    except ValueError:
        unreadable: list[str] = []

        def lenient(type: type, value: Any) -> object:
            try:
                return from_wire(type, value)
            except ValueError:
                if type is Event:
                    raise
                unreadable.append(str(value[-1] if isinstance(value, list) else value))
                return _UNREADABLE

        try:
            message: Message = msgspec.msgpack.Decoder(_ANY, dec_hook=lenient).decode(data)
        except msgspec.DecodeError as error:
            raise ValueError(f"no message: {error}") from None
        return _without_unreadable(message), unreadable


def _without_unreadable(message: Message) -> Message:
    match message:
        case m.FilterUpdate() | m.InterestUpdate():
            added = dict.fromkeys(EVERYTHING if one is _UNREADABLE else one for one in message.added)
            removed = tuple(one for one in message.removed if one is not _UNREADABLE)
            return msgspec.structs.replace(message, added=tuple(added), removed=removed)
        case m.ControlMessage(content=m.FilterUpdate() as update):
            return m.ControlMessage(_without_unreadable(update))  # type: ignore[arg-type]
        case m.TableCopy(neighbour=neighbour, update=update):
            return m.TableCopy(neighbour, _without_unreadable(update))  # type: ignore[arg-type]
    raise ValueError(f"{type(message).__name__} holds a filter that cannot be read")


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
            return filter_of(value)
        case [str() as name, str() as text]:
            return NamedFilter(name, filter_of(text))
    raise ValueError("a filter is a text, or a name and a text")


def filter_of(text: str) -> Filter:
    """A neighbour's filter, within a budget."""
    read = _read_filter(text)
    if isinstance(read, Filter):
        return read
    raise read.with_traceback(None)


@lru_cache(maxsize=20_000)
def _read_filter(text: str) -> Filter | ValueError:
    """A filter, or why there is none. Neighbours often say the same again; and each is read twice (see `prepare`)."""
    try:
        with budget.within(STEPS, SIZE):
            return parse(text)
    except RecursionError:
        return ValueError("the filter is nested too deeply")
    except ValueError as error:
        return error


def is_event(data: bytes) -> bool:
    """Whether a message is a `Forward`, from the look of it; then there is no filter in it."""
    return b"Forward" in data[:16]


def prepare(messages: Iterable[bytes]) -> None:
    """Read the filters of messages, and remember them: to decode these takes little time after that.

    That is for whoever has a thread for it: a neighbour may say thousands of filters at once.
    """
    for data in messages:
        with suppress(ValueError):
            decode_leniently(data)


_CLIENTS: Final = m.Publish | m.Subscribe | m.Unsubscribe | m.Advertise | m.Unadvertise | m.Leave | m.Deliver | m.Refuse
_BROKERS: Final = (
    m.Forward
    | m.FilterUpdate
    | m.Envelope
    | m.TopicCheck
    | m.TableCopy
    | m.LinkUpdate
    | m.InterestUpdate
    | m.ControlMessage
)
_ANY: Final = _CLIENTS | _BROKERS | OverlayMessage
_UNREADABLE: Final = Filter(EVERYTHING.boxes)
"""stands for a filter that cannot be read; told from another one only by `is`"""
_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=to_wire)
_DECODER: Final = msgspec.msgpack.Decoder(_ANY, dec_hook=from_wire)
