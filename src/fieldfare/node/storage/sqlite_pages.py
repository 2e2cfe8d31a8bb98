"""Rows read from the pages of a store's file without SQLite, which refuses a file as a whole where a bit is wrong.

The table is a tree of pages: a page has cells, and a cell is a row; inner pages have pointers to others besides. The
rows reached from the root are those that SQLite would see. A page without a pointer to it that is not free either has
lost its pointer. All bytes read here may be nonsense: only checksums tell which rows are whole. The format is in
"Database File Format" of SQLite's documentation; the names here are its own.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from fieldfare.node.storage.rows import Stored

PAGE: Final = 4096
"""Size of a page in bytes, unless the file has another one."""
_INNER, _LEAF = 2, 10
"""Types of pages of an index tree, in which SQLite stores a table WITHOUT ROWID."""
_INTEGERS: Final = {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8, 8: 0, 9: 0}
"""Sizes of integers by serial type; the last two types are the values 0 and 1 themselves."""
_BROKEN: Final = (IndexError, ValueError, struct.error, OverflowError)


class Read(NamedTuple):
    """The rows in the pages of a file."""

    rows: list[Stored]
    """Rows reached from the root, in their order."""
    orphans: list[Stored]
    """Rows on pages without a pointer to them."""


def read(image: bytes) -> Read:
    """Read all rows in the pages of a file."""
    file = _File(image)
    seen: set[int] = set()
    rows = list(file.walk(file.root(), seen))
    used = seen | file.free | file.overflowing | {1}
    orphans = [row for number in range(2, file.count + 1) if number not in used for row in file.cells(number)[0]]
    return Read(rows, [row for row in orphans if row.is_whole])


class _File:
    def __init__(self, image: bytes) -> None:
        self._image = image
        size = int.from_bytes(image[16:18])
        self._size = size if size >= 512 and size & (size - 1) == 0 else PAGE
        self.count = -(-len(image) // self._size)
        self.overflowing: set[int] = set()
        """Pages that hold the continuation of long rows."""
        self.free = self._free()

    def root(self) -> int:
        """Return the root page of the table: from the schema on page 1, or 2, which SQLite gives the first table."""
        try:
            page = self._page(1)
            columns = self._columns(self._payload(page, struct.unpack_from(">H", page, 108)[0], table=True))
            return int(columns[3]) if 1 < int(columns[3]) <= self.count else 2
        except (*_BROKEN, TypeError):
            return 2

    def walk(self, number: int, seen: set[int]) -> Iterator[Stored]:
        """Yield the rows of a page and of all pages below it."""
        if number in seen or not 1 < number <= self.count:
            return
        seen.add(number)
        rows, children = self.cells(number)
        for place, child in enumerate(children):
            yield from self.walk(child, seen)
            yield from rows[place : place + 1]
        yield from rows[len(children) :]

    def cells(self, number: int) -> tuple[list[Stored], list[int]]:
        """Return the rows of a page, and the pages below: one before each row, and one behind the last."""
        page = self._page(number)
        rows: list[Stored] = []
        children: list[int] = []
        is_inner = page[:1] == bytes([_INNER])
        begin = 12 if is_inner else 8
        count = min(int.from_bytes(page[3:5]), (self._size - begin) // 2)
        for place in range(count):
            try:
                at = struct.unpack_from(">H", page, begin + 2 * place)[0]
                if is_inner:
                    children.append(struct.unpack_from(">I", page, at)[0])
                row = self._columns(self._payload(page, at + 4 * is_inner))
            except _BROKEN:
                row = []
            rows.append(Stored._make([*row, None, None, None, None][:4]))
        if is_inner and len(page) >= begin:
            children.append(struct.unpack_from(">I", page, 8)[0])
        return rows, children

    def _page(self, number: int) -> bytes:
        return self._image[(number - 1) * self._size : number * self._size]

    def _payload(self, page: bytes, at: int, *, table: bool = False) -> bytes:
        """Return the bytes of a cell; a long cell continues in overflow pages."""
        length, at = _varint(page, at)
        if table:
            _, at = _varint(page, at)  # the row's number
        usable = self._size
        most = usable - 35 if table else (usable - 12) * 64 // 255 - 23
        if length <= most:
            return page[at : at + length]
        if length > len(self._image):
            raise ValueError("longer than the file")
        least = (usable - 12) * 32 // 255 - 23
        local = least + (length - least) % (usable - 4)
        local = local if local <= most else least
        data = page[at : at + local]
        number = struct.unpack_from(">I", page, at + local)[0]
        while len(data) < length and 1 < number <= self.count:
            self.overflowing.add(number)
            page = self._page(number)
            data += page[4 : 4 + length - len(data)]
            number = struct.unpack_from(">I", page, 0)[0]
        if len(data) != length:
            raise ValueError("not all there")
        return data

    def _columns(self, payload: bytes) -> list[Any]:
        end, at = _varint(payload, 0)
        types = []
        while at < end:
            type, at = _varint(payload, at)
            types.append(type)
        found: list[Any] = []
        for type in types[:5]:
            size = _INTEGERS[type] if type in _INTEGERS else (type - 12) // 2
            if type in (7, 10, 11) or at + size > len(payload):
                raise ValueError("no such column")
            data = payload[at : at + size]
            at += size
            if type in (8, 9):
                found.append(type - 8)
            elif type in _INTEGERS:
                found.append(int.from_bytes(data, signed=True))
            else:
                found.append(data if type % 2 == 0 else data.decode(errors="replace"))
        return found

    def _free(self) -> set[int]:
        """Return the numbers of the free pages."""
        found: set[int] = set()
        trunk = int.from_bytes(self._image[32:36])
        while 1 < trunk <= self.count and trunk not in found:
            found.add(trunk)
            page = self._page(trunk)
            count = min(int.from_bytes(page[4:8]), self._size // 4 - 2)
            found.update(int.from_bytes(page[8 + 4 * place : 12 + 4 * place]) for place in range(count))
            trunk = int.from_bytes(page[:4])
        return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for count in range(9):
        byte = data[at + count]
        if count == 8:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + count + 1
    raise ValueError("not reached")
