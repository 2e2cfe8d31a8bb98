"""All whole records of a raw file of the event log, whatever is wrong with the rest of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from fieldfare.node.storage.raw_format import (
    ARRAY,
    HEADER_SIZE,
    RECORD,
    Damaged,
    decode,
    good_after,
    is_complete,
    read_header,
    salt_in,
)
from fieldfare.protocol.journal import JournalEntry

_SMALLEST: Final = 26
"""bytes of the shortest record"""


class Read(NamedTuple):
    """The content of a file, as far as the file can be read."""

    entries: list[JournalEntry]
    is_damaged: bool
    torn: int
    """bytes at its end that were never written to the end of a record"""
    lost: tuple[int, bool] | None
    """how many records there may be behind the last whole one, and whether that is exact"""


def read_all(path: Path, first: int) -> Read:
    """All records of a file that are whole; LogError if it has another name, or is of a newer format."""
    data = path.read_bytes()
    if len(data) < HEADER_SIZE:
        return Read([], is_damaged=False, torn=len(data), lost=None)
    is_damaged = False
    try:
        salt, _ = read_header(path, first)
    except Damaged:
        is_damaged, salt = True, _salt(data)
    entries: list[JournalEntry] = []
    at = HEADER_SIZE
    while at < len(data):
        entry, after = _record(data, salt, at)
        if entry is not None:
            entries.append(entry)
            at = after
        elif (good := good_after(path, salt, at)) is not None:
            is_damaged, at = True, good
        elif is_complete(path, salt, at):
            return Read(entries, is_damaged=True, torn=0, lost=_count(data, at))
        else:
            return Read(entries, is_damaged, len(data) - at, None)
    return Read(entries, is_damaged, 0, None)


def _record(data: bytes, salt: int, at: int) -> tuple[JournalEntry | None, int]:
    """The record at an offset, and where the next one begins."""
    if len(data) < (start := at + RECORD.size):
        return None, at
    length, check = RECORD.unpack_from(data, at)
    if start + length > len(data) or crc32(payload := data[start : start + length], salt) != check:
        return None, at
    try:
        return decode(payload), start + length
    except ValueError:
        return None, at


def _count(data: bytes, at: int) -> tuple[int, bool]:
    """How many records stand behind an offset: by their lengths, or if these are wrong, how many fit there."""
    count, end = 0, at
    while end + RECORD.size <= len(data):
        end += RECORD.size + RECORD.unpack_from(data, end)[0]
        count += 1
        if end == len(data):
            return count, True
    return max(1, (len(data) - at) // _SMALLEST), False


def _salt(data: bytes) -> int:
    """The salt of a file with a damaged header: what stands there, or what a record's checksum tells."""
    salt = salt_in(data)
    if _record(data, salt, HEADER_SIZE)[0] is not None:
        return salt
    start = HEADER_SIZE + RECORD.size - 1
    while (start := data.find(ARRAY, start + 1)) >= 0:
        length, check = RECORD.unpack_from(data, start - RECORD.size)
        end = start + length
        try:
            if end > len(data):
                continue
            decode(data[start:end])
        except ValueError:
            continue
        found = _unwound(check, data[start:end])
        if end == len(data) or _record(data, found, end)[0] is not None:
            return found
    return salt


def _unwound(check: int, payload: bytes) -> int:
    """The salt with which a payload has a checksum: `crc32`, backwards."""
    state = check ^ 0xFFFFFFFF
    for byte in reversed(payload):
        place = _BY_TOP[state >> 24]
        state = ((state ^ _TABLE[place]) << 8 & 0xFFFFFFFF) | (place ^ byte)
    return state ^ 0xFFFFFFFF


def _entry_of_table(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0xEDB88320 if byte & 1 else 0)
    return byte


_TABLE: Final = [_entry_of_table(byte) for byte in range(256)]
_BY_TOP: Final = {value >> 24: place for place, value in enumerate(_TABLE)}
