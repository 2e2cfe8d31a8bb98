"""Columns: the keys of an event that filters need.

Every attribute has up to a handful of *columns*, each with a 64-bit key per event: the `TAG` (the kind of value, or
which of null, true, false), the value as a `NUMBER`, a `STRING` (the number of a known constant) or a `TIME`, and the
first or last n characters where a filter has a prefix or suffix. Attributes and constants that no filter mentions
have no column and no number, and cost nothing.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from fieldfare.matching.store.keys import PREFIX, STRING, SUFFIX


@dataclass
class Attribute:
    """The columns of an attribute; -1 where there is none."""

    path: str
    tag: int = -1
    number: int = -1
    string: int = -1
    time: int = -1
    strings: dict[str, int] = field(default_factory=dict)
    """numbers of the string constants, in the order of the numbers"""
    slices: list[tuple[int, int, dict[str, int]]] = field(default_factory=list)
    """prefixes (length > 0) and suffixes (length < 0): length, column, numbers of the constants"""


class Column(NamedTuple):
    """The attribute and the role of a column."""

    attribute: Attribute
    role: int
    length: int = 0


class Columns:
    """The columns that filters have needed so far; columns are only ever added."""

    def __init__(self) -> None:
        self.attributes: dict[str, Attribute] = {}
        self.columns: list[Column] = []
        self._listed: dict[int, list[str]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.columns)

    @classmethod
    def restored(cls, described: Iterable[tuple[str, int, int, int]], texts: Iterator[str]) -> Columns:
        """Return saved columns: path, role, length and number of texts of each, and all texts in a row."""
        columns = cls()
        for path, role, length, count in described:
            attribute = columns.attribute(path)
            numbers = {text: number for number, text in enumerate(itertools.islice(texts, count))}
            if role in (PREFIX, SUFFIX):
                attribute.slices.append((length, len(columns.columns), numbers))
                columns.columns.append(Column(attribute, role, length))
            else:
                columns.column(attribute, role)
                if role == STRING:
                    attribute.strings = numbers
        return columns

    @staticmethod
    def texts(column: Column) -> dict[str, int]:
        """Return the numbers of the texts that a column knows."""
        if column.role == STRING:
            return column.attribute.strings
        return next((known for length, _, known in column.attribute.slices if length == column.length), {})

    def text(self, column: int, number: int) -> str:
        """Return the text of a number, for decoding. Lists of texts are made at first use and grow with need."""
        listed = self._listed.setdefault(column, [])
        while number >= len(listed):
            with self._lock:  # writers do not take the lock: more texts may come during the read
                numbers = self.texts(self.columns[column])
                fresh = list(itertools.islice(reversed(numbers.items()), len(numbers) - len(listed)))
                listed += [text for text, place in reversed(fresh) if fresh[-1][1] == len(listed)]
        return listed[number]

    def attribute(self, path: str) -> Attribute:
        """Return the attribute of a path, made if new."""
        found = self.attributes.get(path)
        if found is None:
            found = self.attributes[path] = Attribute(path)
        return found

    def column(self, attribute: Attribute, role: int) -> int:
        """Return the column of an attribute for a role other than an affix, made if new."""
        name = ("tag", "number", "string", "time")[role]
        column: int = getattr(attribute, name)
        if column < 0:
            column = len(self.columns)
            self.columns.append(Column(attribute, role))
            setattr(attribute, name, column)
        return column

    def slice(self, attribute: Attribute, length: int, text: str) -> tuple[int, int]:
        """Return the column for prefixes (or, negative, suffixes) of a length, and the number of a text."""
        for known, column, numbers in attribute.slices:
            if known == length:
                return column, numbers.setdefault(text, len(numbers))
        column = len(self.columns)
        self.columns.append(Column(attribute, PREFIX if length > 0 else SUFFIX, length))
        attribute.slices.append((length, column, {text: 0}))
        return column, 0
