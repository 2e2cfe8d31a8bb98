"""Frames of WebSockets (RFC 6455) as a server reads and writes them; a parser without I/O.

A node reads a frame for each published event, so the way of a whole, unfragmented message is short; fragments, control
frames and mistakes are left to `FrameReader._read_other`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from websockets.exceptions import ProtocolError
from websockets.frames import Close

try:
    from websockets.speedups import apply_mask
except ImportError:  # no wheel for this platform
    from websockets.utils import apply_mask

MOST_FRAGMENTS: Final = 1000
"""Largest number of fragments of a message."""
_FIN: Final = 0x80
_MASKED: Final = 0x80
_SHORTEST: Final = 6
"""Size in bytes of a client's frame without payload: two bytes of header, four of mask."""


class Opcode(IntEnum):
    """The kinds of frames, numbered as in RFC 6455."""

    CONTINUATION = 0
    TEXT = 1
    BINARY = 2
    CLOSE = 8
    PING = 9
    PONG = 10


_WHOLE: Final = frozenset({_FIN | Opcode.TEXT, _FIN | Opcode.BINARY})
"""First bytes of frames that are whole messages."""


class Fault(NamedTuple):
    """A mistake of the other side, for which the connection is closed."""

    code: int
    reason: str


class _Broken(Exception):
    def __init__(self, code: int, reason: str) -> None:
        self.fault = Fault(code, reason)


class FrameReader:
    r"""A parser of the frames of a client; fragments are put together.

    >>> reader = FrameReader(1000)
    >>> reader.feed(bytes.fromhex("82 82 00 00 00 00 68 69 81"))
    [(<Opcode.BINARY: 2>, b'hi')]
    >>> reader.is_inside
    True
    """

    def __init__(self, most: int) -> None:
        """Refuse messages of more than `most` bytes."""
        self.most = most
        self.fault: Fault | None = None
        """The first mistake; nothing is read after it."""
        self._held: list[bytes] = []
        """The bytes of an incomplete frame, as they came: joined once, since a large frame comes in many parts."""
        self._held_size = 0
        self._needed = 0
        """Number of bytes from which on the incomplete frame is worth another look."""
        self._opcode: Opcode | None = None
        """The kind of a message of which more fragments will come."""
        self._fragments: list[bytes] = []
        self._fragments_size = 0

    @property
    def is_inside(self) -> bool:
        """Tell whether a frame or a message has begun and is not complete."""
        return self._held_size > 0 or self._opcode is not None

    def feed(self, data: bytes) -> list[tuple[Opcode, bytes]]:
        """Return all messages and control frames with a complete last byte; after a mistake `fault` is set."""
        if self.fault is not None:
            return []
        if self._held_size:
            self._held.append(data)
            self._held_size += len(data)
            if self._held_size < self._needed:
                return []
            data = b"".join(self._held)
        found: list[tuple[Opcode, bytes]] = []
        end = 0
        try:
            end = self._read(data, found)
        except _Broken as broken:
            self.fault, end = broken.fault, len(data)
        self._held = [data[end:]] if end < len(data) else []
        self._held_size = len(data) - end
        return found

    def _read(self, data: bytes, found: list[tuple[Opcode, bytes]]) -> int:
        """Append complete messages and control frames; return the end of the last complete frame."""
        at, size = 0, len(data)
        while size - at >= _SHORTEST:
            first, second = data[at], data[at + 1]
            length, start = second & 0x7F, at + _SHORTEST
            if second < _MASKED:
                raise _Broken(1002, "incorrect masking")
            if length > 125:
                wide = 2 if length == 126 else 8
                start += wide
                if size < start - 4:
                    self._needed = start - 4 - at
                    return at
                length = int.from_bytes(data[at + 2 : at + 2 + wide])
            if first & 0x08 and length > 125:
                raise _Broken(1002, "control frame too long")
            if not first & 0x08 and length + self._fragments_size > self.most:
                whole = length + self._fragments_size
                raise _Broken(1009, f"message with {whole} bytes or more exceeds limit of {self.most} bytes")
            end = start + length
            if size < end:
                self._needed = end - at
                return at
            payload = apply_mask(data[start:end], data[start - 4 : start])
            if first in _WHOLE and self._opcode is None:
                found.append((_OPCODES[first & 0x0F], payload))
            else:
                self._read_other(first, payload, found)
            at = end
        self._needed = _SHORTEST
        return at

    def _read_other(self, first: int, payload: bytes, found: list[tuple[Opcode, bytes]]) -> None:
        """Read a fragment or a control frame, or find the mistake."""
        opcode, is_last = _OPCODES.get(first & 0x0F), bool(first & _FIN)
        if opcode is None:
            raise _Broken(1002, "invalid opcode")
        if first & 0x70:
            raise _Broken(1002, "reserved bits must be 0")
        if opcode >= Opcode.CLOSE:
            if not is_last:
                raise _Broken(1002, "fragmented control frame")
            found.append((opcode, payload))
            return
        if (opcode is Opcode.CONTINUATION) != (self._opcode is not None):
            raise _Broken(1002, "unexpected continuation frame" if self._opcode is None else "expected a continuation")
        if len(self._fragments) >= MOST_FRAGMENTS:
            raise _Broken(1009, "a message has too many fragments")
        self._fragments.append(payload)
        self._fragments_size += len(payload)
        self._opcode = self._opcode or opcode
        if is_last:
            found.append((self._opcode, b"".join(self._fragments)))
            self._opcode, self._fragments, self._fragments_size = None, [], 0


_OPCODES: Final = {int(opcode): opcode for opcode in Opcode}


def framed(opcode: Opcode, payload: bytes) -> bytes:
    """Return a server's frame.

    >>> framed(Opcode.BINARY, b"hi").hex(" ")
    '82 02 68 69'
    """
    size = len(payload)
    if size < 126:
        return bytes((_FIN | opcode, size)) + payload
    if size < 1 << 16:
        return b"%c\x7e%b%b" % (_FIN | opcode, size.to_bytes(2), payload)
    return b"%c\x7f%b%b" % (_FIN | opcode, size.to_bytes(8), payload)


def framed_close(code: int, reason: str) -> bytes:
    """Return a frame that closes the connection; a long reason is cut."""
    return framed(Opcode.CLOSE, code.to_bytes(2) + reason.encode()[:123].decode(errors="ignore").encode())


def close_answer(payload: bytes) -> bytes:
    """Return the answer to the payload of a close frame: the same code, or the code of a mistake in the payload.

    >>> close_answer((1000).to_bytes(2) + b"bye").hex(" ")
    '88 02 03 e8'
    """
    try:
        Close.parse(payload)
    except ProtocolError:
        return framed_close(1002, "")
    except UnicodeDecodeError:
        return framed_close(1007, "")
    return framed(Opcode.CLOSE, payload[:2])
