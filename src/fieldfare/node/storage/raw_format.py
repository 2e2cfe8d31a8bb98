"""Format of a raw file of the event log: a header, then records.

A record is a length, a checksum, and an entry as a MessagePack array. The checksums of a file begin with its *salt*, a
random number in its header. So no content of an event can look like a record.
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
"""Magic, version, first position, time of the entry before the file, salt, checksum of these."""
HEADER_SIZE: Final = HEADER.size
RECORD: Final = struct.Struct("<II")
_LARGEST: Final = 1 << 30
"""Largest size of a record in bytes; a larger one would fit in no column of Parquet."""
BLOCK: Final = 1 << 15
"""Bytes of one read, and about the distance between two marks."""


class LogError(ValueError):
    """The log cannot do what was asked, or one of its files is damaged."""


class Damaged(LogError):
    """A file has no whole record at an offset."""

    def __init__(self, path: Path, offset: int, reason: str = "") -> None:
        self.path, self.offset = path, offset
        why = f" ({reason})" if reason else ""
        super().__init__(f"{path} is damaged at byte {offset}{why}. {advice(path.parent)}")

    def because(self, reason: str) -> Damaged:
        """Return the same error with a reason."""
        return Damaged(self.path, self.offset, reason)


ADVICE: Final = "Bring the folder back from a copy"


def advice(folder: Path) -> str:
    """Return the advice for a damaged file in a node's folder, or in its log."""
    folder = folder.parent if folder.name == "log" else folder
    return f"{ADVICE}, or keep what is whole: fieldfare admin salvage {folder}"


def write_header(path: Path, first: int, before: float) -> int:
    """Write a file that has only a header, and return the salt."""
    salt = secrets.randbits(32) | 1  # not 0: so zeros are no record
    fields = (_MAGIC, _VERSION, first, before, salt)
    private.create(path, HEADER.pack(*fields, crc32(HEADER.pack(*fields, 0))))
    return salt


def read_header(path: Path, first: int) -> tuple[int, float]:
    """Return the salt of a file, and the time of the last entry before it."""
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
    """Return the salt in a header, even if the header's checksum is wrong."""
    return int(HEADER.unpack_from(data)[4])


def encode(entry: tuple[int, float, str, int, bytes, bytes], salt: int) -> tuple[bytes, bytes]:
    """Return an entry as a record: its length and checksum, and its payload."""
    payload = _encode(entry)
    if len(payload) > _LARGEST:
        raise ValueError(f"it has {len(payload)} bytes, and {_LARGEST} are allowed")
    return RECORD.pack(len(payload), crc32(payload, salt)), payload


_encode: Final = msgspec.msgpack.Encoder().encode
decode: Final[Callable[[bytes], JournalEntry]] = msgspec.msgpack.Decoder(JournalEntry).decode


def blocks(path: Path, salt: int, offset: int, size: int) -> Iterator[tuple[int, list[JournalEntry]]]:
    """Yield the entries from an offset on, in blocks, each with the offset of its first record."""
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
    """Return the whole entries in the data, their end, and whether the remainder can be the beginning of a record."""
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
    """Return the offset of a good record behind a bad one, or None. Lengths may be wrong: every place is tried."""
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
    """Tell whether a bad record at the end of a file was written to its end, so that it is damaged and not torn.

    A write that a kill cuts short leaves less than its last record; a power failure may leave zeros at its end. A
    complete record with a wrong checksum was changed later. If the record seems to be longer than
    the file, its length may have changed: then flipping one bit of the length makes the checksum right.
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
"""Number of zero bytes at the end of a file that were never written: no record ends like that."""
ARRAY: Final = bytes([0x90 + len(JournalEntry._fields)])
"""First byte of each payload: the MessagePack array of an entry."""


def skip(path: Path, offset: int, count: int) -> int:
    """Return the end of `count` records from an offset on; only their lengths are read."""
    with path.open("rb") as file:
        for _ in range(count):
            file.seek(offset)
            if len(head := file.read(RECORD.size)) < RECORD.size:
                raise Damaged(path, offset)
            offset += RECORD.size + RECORD.unpack(head)[0]
    return offset
