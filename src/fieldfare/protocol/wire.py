"""Messages as MessagePack, for links, logs and snapshots. `Connect` and `Disconnect` are never on a wire.

Events have a separate codec. Filters are texts: neighbours of different versions understand each other, and a person
can read a dump.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import EVERYTHING, budget, parse
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol import messages as m
from fieldfare.protocol import versions
from fieldfare.protocol.event_options import options_of
from fieldfare.protocol.journal import JournalEntry, details_of
from fieldfare.protocol.messages import Message
from fieldfare.protocol.overlay_messages import OverlayMessage

STEPS: Final = 1_000_000
"""Steps of work to parse a neighbour's filter, about a microsecond each."""
SIZE: Final = 1 << 20
"""Characters of a neighbour's filter, about; the neighbour may have merged many filters into one."""


def encode(message: Message) -> bytes:
    """Return a message as MessagePack.

    >>> decode(encode(m.Subscribe("cheap", parse("price < 10"))))
    Subscribe(id='cheap', filter=parse('price < 10'))
    """
    return _ENCODER.encode(message)


def decode(data: bytes) -> Message:
    """Return the message in the data; ValueError if there is none."""
    try:
        message: Message = _DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"no message: {error}") from None
    return message


def decode_leniently(data: bytes) -> tuple[Message, list[str]]:
    """Return the message in the data, and the texts of all filters unreadable here.

    An unreadable added filter becomes `EVERYTHING`: the neighbour may get too many events, but loses none. An
    unreadable removed filter stays, for the same reason.
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
            message: Message = msgspec.msgpack.Decoder(AnyMessage, dec_hook=lenient).decode(data)
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


def for_version(data: bytes, version: int, peer: str = "") -> bytes:
    """Return an encoded message for a peer of a version; instead of a kind that the version lacks, an empty update.

    Numbers of messages leave nothing out, and an empty update changes nothing. Of an envelope to the peer the content
    counts; nodes on the way pass any content on.
    """
    if version >= versions.NEWEST:
        return data
    kind = _kind_of(data).name
    if kind == m.Envelope.__name__:
        letter = _ENVELOPE.decode(data)
        with suppress(msgspec.DecodeError):  # what nobody can read has no kind
            kind = _kind_of(letter.content).name if letter.to == peer else kind
    return data if versions.has(version, kind) else NOTHING


def encode_forward(entry: JournalEntry) -> bytes:
    """Return the `Forward` of a journal entry as MessagePack; the event stays encoded."""
    details = details_of(entry)
    forward = {"is": "Forward", "event": entry.event, "publisher": entry.publisher, "sequence": entry.sequence}
    return msgspec.msgpack.encode({**forward, "by": details.by, "source": details.source, **options_of(details)})


def to_wire(value: object) -> object:
    """Return events and filters in a form for msgspec: the hook of the encoder."""
    match value:
        case Event():
            return msgpack.encode(value)
        case NamedFilter():
            return [value.name, str(value)]
        case Filter():
            return str(value)
    raise TypeError(f"{type(value).__name__} has no place in a message")


def from_wire(type: type, value: Any) -> object:
    """Return an event or a filter from the form of `to_wire`: the hook of the decoder."""
    if type is Event:
        return msgpack.decode(value)
    match value:
        case str():
            return filter_of(value)
        case [str() as name, str() as text]:
            return NamedFilter(name, filter_of(text))
    raise ValueError("a filter is a text, or a name and a text")


def filter_of(text: str) -> Filter:
    """Parse a neighbour's filter within a budget of steps and characters; ValueError if there is none."""
    read = _read_filter(text)
    if isinstance(read, Filter):
        return read
    raise read.with_traceback(None)


@lru_cache(maxsize=20_000)
def _read_filter(text: str) -> Filter | ValueError:
    """Return a filter, or the error. Cached: neighbours repeat filters, and each is parsed twice (`prepare`)."""
    try:
        with budget.within(STEPS, SIZE):
            return parse(text)
    except RecursionError:
        return ValueError("the filter is nested too deeply")
    except ValueError as error:
        return error


def is_event(data: bytes) -> bool:
    """Tell from the first bytes whether a message is a `Forward`, which has no filters to parse."""
    return b"Forward" in data[:16]


def prepare(messages: Iterable[bytes]) -> None:
    """Parse the filters of messages into a cache, which makes a later `decode` fast.

    A node calls `prepare` in a thread, because a neighbour may send thousands of filters at once.
    """
    for data in messages:
        with suppress(ValueError):
            decode_leniently(data)


AnyMessage: TypeAlias = (
    m.Publish
    | m.Subscribe
    | m.Unsubscribe
    | m.Advertise
    | m.Unadvertise
    | m.Leave
    | m.Deliver
    | m.Refuse
    | m.Forward
    | m.FilterUpdate
    | m.Envelope
    | m.TopicCheck
    | m.TableCopy
    | m.LinkUpdate
    | m.InterestUpdate
    | m.ControlMessage
    | OverlayMessage
)
"""All messages that may be on a wire."""


class _Kind(msgspec.Struct, frozen=True):
    """The kind of a message; the decoder skips the rest."""

    name: str = msgspec.field(name="is")


_UNREADABLE: Final = Filter(EVERYTHING.boxes)
"""Stands for a filter that cannot be read; told from another filter only by `is`."""
_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=to_wire)
_DECODER: Final = msgspec.msgpack.Decoder(AnyMessage, dec_hook=from_wire)
_ENVELOPE: Final = msgspec.msgpack.Decoder(m.Envelope)
_kind_of: Final = msgspec.msgpack.Decoder(_Kind).decode
NOTHING: Final = encode(m.FilterUpdate())
"""A message without effect."""
