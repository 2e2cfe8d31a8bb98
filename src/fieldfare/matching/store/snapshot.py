"""Snapshots: an index in a file or a buffer that another process maps and matches with at once.

    magic, format, length and checksum of the header │ header (msgpack) │ arena │ ids (Arrow) │ texts (Arrow)

The arena is used in place: nothing is rebuilt, and processes on a machine share the pages of the file. Every section
has a checksum, and all checksums are verified before use. A file that is damaged, cut short or of a newer format is
refused.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.matching.store.columns import Columns
from fieldfare.matching.store.layout import Words, is_arena

MAGIC: Final = b"FIELDFAR"
FORMAT: Final = 1
_HEAD: Final = struct.Struct("<8sIIQ")


class SnapshotError(ValueError):
    """A file or buffer that is no usable snapshot."""


class Section(msgspec.Struct, frozen=True):
    """The position of a part, with a checksum."""

    offset: int
    length: int
    sum: int


class Header(msgspec.Struct, frozen=True):
    """The content of a snapshot besides the sections."""

    columns: list[tuple[str, int, int, int]]
    """path, role, length of affixes, number of texts"""
    inexact: dict[int, str] = msgspec.field(name="kept")
    """filters that entries describe inexactly, as text, by number"""
    filters: int
    sections: dict[str, Section]


def write(columns: Columns, arena: Words, ids: Any, inexact: dict[int, Filter]) -> bytes:
    """Return the bytes of a snapshot; ids are an Arrow array."""
    described: list[tuple[str, int, int, int]] = []
    texts: list[str] = []
    for column in columns.columns:
        numbers = columns.texts(column)
        described.append((column.attribute.path, column.role, column.length, len(numbers)))
        texts.extend(numbers)
    parts = {
        "arena": arena.tobytes(),
        "ids": _ipc(ids),
        "texts": _ipc(pa.array(texts, pa.large_string())),
    }
    known = {number: str(filter) for number, filter in inexact.items()}
    blank = Header(described, known, len(ids), {name: Section(2**62, 2**62, 2**63 - 1) for name in parts})
    start = _aligned(_HEAD.size + len(msgspec.msgpack.encode(blank)))
    sections = {}
    offset = start
    for name, part in parts.items():
        sections[name] = Section(offset, len(part), _sum(np.frombuffer(part, np.uint8)))
        offset = _aligned(offset + len(part))
    header = msgspec.msgpack.encode(Header(described, known, len(ids), sections))
    out = bytearray(offset)
    _HEAD.pack_into(out, 0, MAGIC, FORMAT, zlib.crc32(header), len(header))
    out[_HEAD.size : _HEAD.size + len(header)] = header
    for name, part in parts.items():
        out[sections[name].offset : sections[name].offset + len(part)] = part
    return bytes(out)


def read(source: str | Path | bytes) -> tuple[Columns, Words, Any, dict[int, Filter]]:
    """Return columns, arena, ids (an Arrow array) and inexact filters of a snapshot. A file is mapped, not read."""
    if isinstance(source, bytes):
        whole = np.frombuffer(bytearray(source), np.uint8)  # a copy that may be written to
        name = "the snapshot"
    else:
        path = Path(source)
        name = str(path)
        size = path.stat().st_size
        whole = np.asarray(np.memmap(path, np.uint8, mode="c")) if size else np.zeros(0, np.uint8)
    if len(whole) < _HEAD.size or bytes(whole[:8]) != MAGIC:
        raise SnapshotError(f"{name} is not a Fieldfare snapshot")
    _, version, checksum, length = _HEAD.unpack(bytes(whole[: _HEAD.size]))
    if version > FORMAT:
        raise SnapshotError(f"{name} has format {version}; this version of Fieldfare reads up to {FORMAT}: upgrade it")
    encoded = bytes(whole[_HEAD.size : _HEAD.size + length])
    if len(encoded) != length or zlib.crc32(encoded) != checksum:
        raise SnapshotError(f"{name} is damaged: its header does not have the sum it was written with")
    header = msgspec.msgpack.decode(encoded, type=Header)
    parts = {part: _part(whole, section, name, part) for part, section in header.sections.items()}
    arena = parts["arena"].view(np.int64)
    if not is_arena(arena):
        raise SnapshotError(f"{name} is damaged: there is no segment where there should be one")
    texts = _opened(parts["texts"]).to_pylist()
    columns = Columns.restored(header.columns, iter(texts))
    inexact = {number: parse(text) for number, text in header.inexact.items()}
    return columns, arena, _opened(parts["ids"]), inexact


def _part(whole: Any, section: Section, name: str, part: str) -> Any:
    found = whole[section.offset : section.offset + section.length]
    if len(found) != section.length:
        raise SnapshotError(f"{name} is cut short: its {part} end after {len(found)} of {section.length} bytes")
    if _sum(found) != section.sum:
        raise SnapshotError(f"{name} is damaged: its {part} do not have the sum they were written with")
    return found


def _sum(part: Any) -> int:
    """Return the sum of all words: as fast as memory, and changed by every change of a single word."""
    words = part[: len(part) // 8 * 8].view(np.uint64)
    return (int(np.add.reduce(words, dtype=np.uint64)) + int(part[len(part) // 8 * 8 :].sum())) % 2**63


def _aligned(offset: int) -> int:
    return -(-offset // 64) * 64


def _ipc(array: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([pa.field("v", array.type)])) as writer:
        writer.write_batch(pa.record_batch([array], ["v"]))
    return bytes(sink.getvalue())


def _opened(part: Any) -> Any:
    return pa.ipc.open_stream(pa.py_buffer(part)).read_all().column(0).combine_chunks()
