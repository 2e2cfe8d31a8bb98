"""`Codec`: client frames and their events, as bytes (MessagePack) or text (JSON).

>>> from fieldfare.protocol.frames import Hello
>>> JSON_CODEC.encode(Hello(session="ana"))
'{"is":"Hello","session":"ana"}'
>>> JSON_CODEC.from_client('{"is":"Helo"}')
Traceback (most recent call last):
    ...
fieldfare.protocol.codec.FrameError: no frame: Invalid value 'Helo' - at `$.is`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from fieldfare.events import json, msgpack
from fieldfare.events.event import Event
from fieldfare.protocol.frames import Frame, FromClient, FromNode
from fieldfare.protocol.versions import NEWEST, Subprotocol

Data = TypeVar("Data", bytes, str)
Said = TypeVar("Said", FromClient, FromNode)


class FrameError(ValueError):
    """Received data is no frame of the client protocol."""


@dataclass(frozen=True, slots=True)
class Codec(Generic[Data]):
    """An encoding of frames; there are `MSGPACK_CODEC` and `JSON_CODEC`."""

    form: str
    """Form of the frames, as in the name of the WebSocket's subprotocol; see `versions`."""
    encode: Callable[[Frame], Data]
    _from_client: Callable[[Any], FromClient]
    _from_node: Callable[[Any], FromNode]
    event: Callable[[bytes], Event]
    """Decodes an event of a frame."""
    event_to_log: Callable[[bytes], Event]
    """Decodes an event of a frame into an event that has its MessagePack, the form of the log."""
    raw: Callable[[Event], bytes]
    """Encodes an event for a frame."""

    @property
    def name(self) -> str:
        """The newest name of the WebSocket's subprotocol."""
        return str(Subprotocol(self.form, NEWEST))

    def from_client(self, data: bytes | str) -> FromClient:
        """Decode a frame of a client; `FrameError` for all other data."""
        return self._read(self._from_client, data)

    def from_node(self, data: bytes | str) -> FromNode:
        """Decode a frame of a node; `FrameError` for all other data."""
        return self._read(self._from_node, data)

    def _read(self, read: Callable[[Any], Said], data: bytes | str) -> Said:
        if isinstance(data, str) != (self.form == "json"):
            raise FrameError(f"{self.form} has {'text' if self.form == 'json' else 'binary'} frames")
        try:
            return read(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, OverflowError) as error:
            raise FrameError(f"no frame: {error}") from None


def _text(frame: Frame) -> str:
    return msgspec.json.encode(frame).decode()


MSGPACK_CODEC: Final = Codec(
    "msgpack",
    msgspec.msgpack.Encoder().encode,
    msgspec.msgpack.Decoder(FromClient).decode,
    msgspec.msgpack.Decoder(FromNode).decode,
    msgpack.decode,
    msgpack.decode,
    msgpack.encode,
)
JSON_CODEC: Final = Codec(
    "json",
    _text,
    msgspec.json.Decoder(FromClient).decode,
    msgspec.json.Decoder(FromNode).decode,
    json.decode,
    msgpack.from_json,
    json.encode,
)
CODECS: Final[dict[str, Codec[Any]]] = {codec.form: codec for codec in (MSGPACK_CODEC, JSON_CODEC)}
"""Codecs by the form of the frames."""
