"""Sets of values drawn as lines.

    ──────○━━━━━━━━●──────
         100     120.5

A heavy line is inside the set and a light line outside; a full dot belongs to the set, a hollow dot does not; an arrow
has no end. Marks are evenly spread, not to scale. Values without an order, and sets that are no union of intervals, are
described in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from fieldfare.cli.formats.values import printable
from fieldfare.events.values import Kind, format_timestamp
from fieldfare.filters import intervals
from fieldfare.filters.constraint import ELEMENTS, Constraint
from fieldfare.filters.intervals import Cut, Intervals
from fieldfare.filters.literals import literal
from fieldfare.filters.strings import Language
from fieldfare.filters.valueset import Atom, ValueSet

_ATOMS: Final = {
    Atom.MISSING: "missing",
    Atom.NULL: "null",
    Atom.FALSE: "false",
    Atom.TRUE: "true",
    Atom.NAN: "NaN",
    Atom.LIST: "any list",
    Atom.OBJECT: "any object",
}
_KINDS: Final = {
    Kind.NUMBER: "any number",
    Kind.STRING: "any string",
    Kind.TIME: "any timestamp",
    Kind.BYTES: "any bytes",
}
_LONGEST: Final = 24
"""characters of a value that a drawing shows"""
_TAIL: Final = 6
"""the line before the first mark and behind the last"""


class Piece(NamedTuple):
    """An interval, with None for no end; a single value is both ends."""

    low: Any
    high: Any
    closed: str


class Row(NamedTuple):
    """A part of a drawing: a label, and a line or two."""

    label: str
    lines: tuple[str, ...]


class _Mark(NamedTuple):
    label: str
    dot: str
    before: bool
    after: bool


def pieces(part: Intervals) -> list[Piece]:
    """Return the intervals as people write them: up to 'a', not below the string that follows 'a'."""
    found = []
    for low, high in part.pieces():
        single = intervals.point(low, high)
        if single is not None:
            found.append(Piece(single[0], single[0], "[]"))
        else:
            (start, above), (end, beyond) = _shown(low), _shown(high)
            found.append(Piece(start, end, ("(" if above or low is None else "[") + ("]" if beyond else ")")))
    return found


def draw(wanted: Constraint, width: int) -> list[Row]:
    """Return the rows that show a constraint: a line for each ordered kind, and other values in words."""
    if wanted.is_plain:
        return _draw_set(wanted.values, width)
    rows = []
    if wanted.every != ELEMENTS:
        rows += [Row(f"every {label}", lines) for label, lines in _draw_set(wanted.every, width, elements=True)]
    for hit in sorted(wanted.some, key=repr):
        rows += [Row(f"some {label}", lines) for label, lines in _draw_set(hit, width, elements=True)]
    return rows


def words(values: ValueSet) -> list[str]:
    """Return the names of the values and kinds that belong to the set as a whole."""
    found = [word for bit, word in _ATOMS.items() if values.atoms & bit]
    return found + [_KINDS[kind] for kind, part in values.kinds() if part.is_full]


def _draw_set(values: ValueSet, width: int, *, elements: bool = False) -> list[Row]:
    rows = []
    for kind, part in values.kinds():
        if isinstance(part, Language):
            rows.append(Row(kind.value, ("by pattern",)))
        elif not part.is_full:
            rows.append(Row(kind.value, _line(pieces(part), width)))
    others = words(values)
    if others:
        rows.append(Row("also" if rows else "is", (_others(others, drawn=len(rows), elements=elements),)))
    return rows


def _others(found: list[str], *, drawn: int, elements: bool) -> str:
    """Return the words, or in short "anything else"."""
    missing = "missing" in found
    everything = len(_ATOMS) + len(_KINDS) - drawn - (2 if elements else 1)  # no element is missing or a list
    if drawn and len(found) - missing >= everything:
        return "anything else, and missing" if missing else "anything else"
    return ", ".join(found)


def _line(found: Sequence[Piece], width: int) -> tuple[str, str]:
    """Return a line with marks, and the values beneath the marks; a line that is too long is cut."""
    marks = list(_marks(found))
    line, labels = _start(marks[0].before), ""
    for number, mark in enumerate(marks):
        place = (
            max(len(line), len(labels) + 2 + len(mark.label) // 2) if labels else max(len(line), len(mark.label) // 2)
        )
        left = place - len(mark.label) // 2
        rest = len(marks) - number
        if left + len(mark.label) + _TAIL + len(f" … {rest} more") > width and rest > 1 and number:
            return f"{line} … {rest} more", labels
        line = line.ljust(place, _stroke(mark.before)) + mark.dot + _stroke(mark.after) * _TAIL
        labels = labels.ljust(left) + mark.label
    return (line[:-1] + "▶" if marks[-1].after else line), labels


def _start(inside: bool) -> str:
    return "◀" + "━" * (_TAIL - 1) if inside else "─" * _TAIL


def _stroke(inside: bool) -> str:
    return "━" if inside else "─"


def _marks(found: Sequence[Piece]) -> Iterator[_Mark]:
    """Yield the ends of the pieces, from left to right; a hole of a single value is a single mark."""
    waiting: _Mark | None = None
    for low, high, closed in found:
        single = low is not None and low == high
        if low is not None:
            label = _label(low)
            hole = waiting is not None and waiting.label == label
            if waiting is not None and not hole:
                yield waiting
            yield _Mark(label, "●" if closed[0] == "[" else "○", hole, not single)
        elif waiting is not None:
            yield waiting
        waiting = None
        if high is not None and not single:
            waiting = _Mark(_label(high), "●" if closed[1] == "]" else "○", True, False)
    if waiting is not None:
        yield waiting


def _shown(cut: Cut | None) -> tuple[Any, int]:
    """Return a cut as people write it: just above a value rather than just below the next value."""
    if cut is None:
        return None, 0
    value, above = cut
    if isinstance(value, str | bytes) and value[-1:] in ("\0", b"\0"):
        return value[:-1], 1
    if isinstance(value, datetime) and value.microsecond % 1000 == 1:
        return value - timedelta(microseconds=1), 1
    return value, above


def _label(value: Any) -> str:
    text = format_timestamp(value) if isinstance(value, datetime) else printable(literal(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
