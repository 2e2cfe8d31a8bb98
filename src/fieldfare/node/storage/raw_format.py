"""What a raw file of the event log looks like: a header, and then records.

A record is a length, a checksum, and an entry as a MessagePack array. The checksums of a file begin with its *salt*, a
random number in its header. So nothing that a publisher puts into an event can look like a record.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec

from fieldfare.node.storage import private
from fieldfare.protocol.journal import JournalEntry

_MAGIC: Final = b"\x89FARELOG"
_VERSION: Final = 1
HEADER: Final = struct.Struct("<8sIqdII")
"""magic, version, first position, time of the entry before it, salt, checksum of all this"""
HEADER_SIZE: Final = HEADER.size
RECORD: Final = struct.Struct("<II")
_LARGEST: Final = 1 << 30
"""of a record in bytes: what is more fits in no column of Parquet"""
BLOCK: Final = 1 << 15
"""so much is read at once, and about so much lies between two marks"""


class LogError(ValueError):
    """The log cannot do that, or one of its files is damaged."""


class Damaged(LogError):
    """There is no whole record at an offset."""

    def __init__(self, path: Path, offset: int, reason: str = "") -> None:
        self.path, self.offset = path, offset
        why = f" ({reason})" if reason else ""
        super().__init__(f"{path} is damaged at byte {offset}{why}. {advice(path.parent)}")

    def because(self, reason: str) -> Damaged:
        """The same, with more about it."""
        return Damaged(self.path, self.offset, reason)


ADVICE: Final = "Bring the folder back from a copy"


def advice(folder: Path) -> str:
    """What to do about a damaged file in a node's folder, or in the log there."""
    folder = folder.parent if folder.name == "log" else folder
    return f"{ADVICE}, or keep what is whole: fieldfare admin salvage {folder}"


def write_header(path: Path, first: int, before: float) -> int:
    """Begin a file; gives its salt."""
    salt = secrets.randbits(32) | 1  # not 0: zeros are no record then
    fields = (_MAGIC, _VERSION, first, before, salt)
    private.create(path, HEADER.pack(*fields, crc32(HEADER.pack(*fields, 0))))
    return salt


def read_header(path: Path, first: int) -> tuple[int, float]:
    """Salt, and time of the last entry before."""
    with path.open("rb") as file:
        data = file.read(HEADER.size)
    if len(data) < HEADER.size:
        raise Damaged(path, len(data))
    magic, version, named, before, salt, check = HEADER.unpack(data)
    right = check == crc32(HEADER.pack(magic, version, named, before, salt, 0))
    if magic == _MAGIC and version != _VERSION and right:
        raise LogError(f"{path} has the format version {version}, and only {_VERSION} is known: use a newer Fieldfare")
    if magic != _MAGIC or not right:
        raise Damaged(path, 0)
    if named != first:
        raise LogError(f"{path} begins with position {named}: give it back its old name")
    return salt, before


def salt_in(data: bytes) -> int:
    """The salt in a header, whether it is right or not."""
    return int(HEADER.unpack_from(data)[4])


def encode(entry: tuple[int, float, str, int, bytes, bytes], salt: int) -> tuple[bytes, bytes]:
    """An entry as a record, in two pieces."""
    payload = _encode(entry)
    if len(payload) > _LARGEST:
        raise ValueError(f"it has {len(payload)} bytes, and {_LARGEST} are allowed")
    return RECORD.pack(len(payload), crc32(payload, salt)), payload


_encode: Final = msgspec.msgpack.Encoder().encode
decode: Final[Callable[[bytes], JournalEntry]] = msgspec.msgpack.Decoder(JournalEntry).decode


def blocks(path: Path, salt: int, offset: int, size: int) -> Iterator[tuple[int, list[JournalEntry]]]:
    """The entries from an offset on, some at a time, with the offset of the first."""
    want = BLOCK
    with path.open("rb", buffering=0) as file:
        while offset < size:
            file.seek(offset)
            data = file.read(want := min(want, size - offset))
            entries, used, good = _block(data, salt)
            if entries:
                yield offset, entries
            offset += used
            if not good or len(data) < want:
                raise Damaged(path, offset)
            want = BLOCK
            if not used:  # the record is larger than a block
                want = RECORD.size + (RECORD.unpack_from(data)[0] if len(data) >= RECORD.size else 0)
                if want > size - offset:
                    raise Damaged(path, offset)


def _block(data: bytes, salt: int) -> tuple[list[JournalEntry], int, bool]:
    """The whole entries in the data, where they end, and whether what follows is good as far as it goes."""
    entries: list[JournalEntry] = []
    at, end = 0, len(data)
    while (start := at + RECORD.size) <= end:
        length, check = RECORD.unpack_from(data, at)
        stop = start + length
        if stop > end:
            return entries, at, length <= _LARGEST
        payload = data[start:stop]
        if crc32(payload, salt) != check:
            return entries, at, False
        try:
            entries.append(decode(payload))
        except ValueError:
            return entries, at, False
        at = stop
    return entries, at, True


def good_after(path: Path, salt: int, offset: int) -> int | None:
    """The offset of a good record somewhere after one that is not. Lengths may be wrong: every place is tried."""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    start = RECORD.size
    while (start := data.find(ARRAY, start + 1)) >= 0:
        length, check = RECORD.unpack_from(data, start - RECORD.size)
        if start + length <= len(data) and crc32(data[start : start + length], salt) == check:
            return offset + start - RECORD.size
    return None


def is_complete(path: Path, salt: int, offset: int) -> bool:
    """Whether a bad record at the end of a file was written to its end, so that it is damaged, and not torn.

    A write that a kill cuts short leaves less than its last record; one that a power failure cuts short may leave zeros
    instead. What is there to its end and has a wrong checksum was changed later. If the record seems to be longer than
    the file, its length may be what was changed: then one bit of it makes all right again.
    """
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read()
    if len(data) < RECORD.size or not any(data[-_ZEROS:]):
        return False
    length, check = RECORD.unpack_from(data)
    if length <= len(data) - RECORD.size:
        return True
    lengths = (length ^ 1 << bit for bit in range(32))
    return any(
        other <= len(data) - RECORD.size and crc32(data[RECORD.size : RECORD.size + other], salt) == check
        for other in lengths
    )


_ZEROS: Final = 16
"""so many at the end of a file were never written: no record ends like that"""
ARRAY: Final = bytes([0x90 + len(JournalEntry._fields)])
"""how each payload begins"""


def skip(path: Path, offset: int, count: int) -> int:
    """Where so many records that begin at an offset end. Only their lengths are looked at."""
    with path.open("rb") as file:
        for _ in range(count):
            file.seek(offset)
            if len(head := file.read(RECORD.size)) < RECORD.size:
                raise Damaged(path, offset)
            offset += RECORD.size + RECORD.unpack(head)[0]
    return offset
