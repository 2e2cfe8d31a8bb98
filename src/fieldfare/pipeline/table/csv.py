"""CSV to events: the text of a cell gives its type, and an empty cell is a missing field, as in `fieldfare match`.

A row that is no event is passed on as its text, with the problem.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from fieldfare.events import Event, EventError, json
from fieldfare.events.cells import typed


class Row(NamedTuple):
    """A row of a CSV file: an event as JSON or, with a problem, the text of the row."""

    event: bytes
    problem: str | None
    line: int
    """the last line of the row in the file, from 1"""


def read_csv(content: bytes, strings: Collection[str] = ()) -> Iterator[Row]:
    r"""Yield the rows below the header; cells of the columns in `strings` stay strings.

    >>> [row.event for row in read_csv(b"symbol,price\nIBM,12\n")]
    [b'{"symbol":"IBM","price":12}']
    """
    text = content.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    lines = list(io.StringIO(text, newline=""))
    reader = csv.reader(iter(lines), strict=True)
    try:
        header = next(reader, [])
        problem = "two columns of the file have the same name" if len(set(header)) < len(header) else None
    except csv.Error as error:
        header, problem = [], f"the header of the file: {error}"
    while (begin := reader.line_num) < len(lines):
        try:
            row = next(reader, [])
            if not row:
                continue
            if problem is None:
                yield Row(json.encode(_event(header, row, strings)), None, reader.line_num)
                continue
            wrong = problem
        except (csv.Error, EventError) as error:
            wrong = str(error)
        text = "".join(lines[begin : reader.line_num]).rstrip("\r\n")
        bad = text.encode(errors="surrogateescape")
        yield Row(bad, "not UTF-8" if _UNDECODED.search(text) else wrong, reader.line_num)


def _event(header: list[str], row: list[str], strings: Collection[str]) -> Event:
    if len(row) > len(header):
        raise EventError("", f"{len(row)} cells, but the header names {len(header)}")
    pairs = zip(header, row, strict=False)
    return Event({name: cell if name in strings else typed(cell) for name, cell in pairs if cell})


_UNDECODED: Final = re.compile("[\udc80-\udcff]")
"""bytes that are not UTF-8"""
