"""Filters as documents of the CloudEvents Subscriptions API, in its dialects exact, prefix, suffix, all, any and not.

The dialects compare strings, so a filter is first reduced to what it says of string attributes, and refused if it says
something of other values that does not follow from that. What remains are sets of strings: an exact text is a point, a
prefix an interval, and other intervals are such with holes, `{"all": [{"prefix": …}, {"not": {"exact": …}}]}`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from fieldfare.events.values import MISSING
from fieldfare.filters import intervals, rendering, valueset
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.languages.cesql_expression import Cesql
from fieldfare.filters.languages.cesql_syntax import Attribute, Call
from fieldfare.filters.languages.cesql_texts import text_of
from fieldfare.filters.patterns import MANY, Pattern
from fieldfare.filters.strings import StringSet
from fieldfare.filters.valueset import Atom, ValueSet

Document: TypeAlias = dict[str, Any]

ATTRIBUTE: Final = re.compile("(?!data$)[a-z0-9]+")
"""what CloudEvents allows as the name of an attribute"""

MAX_PARTS: Final = 64
"""exact texts and prefixes to make one set of strings from"""


class _Unsayable(Exception):  # a way out; what is reported names the filter
    """A set of strings for which there is no document."""


def render(filter: Filter) -> Document | list[Document]:
    """The document of a filter: for string attributes, and those that are missing, it means the same.

    A filter that everything matches is the empty list. What the dialects have no words for is a ValueError.

    >>> from fieldfare.filters import parse
    >>> render(parse("type STARTS WITH 'com.' AND source IN ('/a', '/b') AND subject = 'x'"))
    {'all': [{'any': [{'exact': {'source': '/a'}}, {'exact': {'source': '/b'}}]}, {'exact': {'subject': 'x'}},
    {'prefix': {'type': 'com.'}}]}
    """
    reduced = Filter(box for branch in filter.branches if (box := _on_strings(branch)) is not None)
    if reduced.is_empty:
        raise ValueError("cannot be expressed in the CloudEvents dialects: a filter that nothing can match")
    if reduced.is_full:
        return []
    return _any(_all(_side(name, wanted) for name, wanted in branch.items()) for branch in reduced.branches)


def _refused(dimension: Dimension, wanted: Constraint) -> ValueError:
    text = rendering.render([Branch({dimension: wanted})])
    return ValueError(f"cannot be expressed in the CloudEvents dialects: {text}")


# --- what a filter says of strings ------------------------------------------------------------------------------------


def _on_strings(branch: Branch) -> Branch | None:
    """The branch with sets that follow from their strings alone: no other values, or all others if missing is in it.

    None if no strings are left, where a condition on the attribute is joined with one on its text.
    """
    sides: dict[Dimension, Constraint] = {}
    for dimension, wanted in branch.items():
        name, values = _attribute(dimension), wanted.values
        if name is None or not wanted.is_plain or not (isinstance(dimension, Cesql) or _follows(values)):
            raise _refused(dimension, wanted)
        strings = ~ValueSet(strings=~values.strings) if MISSING in values else ValueSet(strings=values.strings)
        side = Constraint(strings) & sides.get(name, Constraint(valueset.FULL))
        if side.is_empty:
            return None
        sides[name] = side
    return Branch(sides)


def _attribute(dimension: Dimension) -> str | None:
    """The attribute that a dimension is, or casts to a string."""
    match dimension:
        case str(name):
            pass
        case Cesql(Call("STRING", (Attribute(name),))):
            pass
        case _:
            return None
    return name if ATTRIBUTE.fullmatch(name) else None


def _follows(values: ValueSet) -> bool:
    """Do the values that are no strings follow from the strings, each being written as one of them?

    If the attribute may be missing, it is the values outside that must follow; or all of a kind but some that follow
    from the strings inside, since then another branch decides about that kind by its text.
    """
    missing = MISSING in values
    asked = ~values if missing else values
    if asked.atoms & (Atom.NULL | Atom.LIST | Atom.OBJECT):
        return False
    listed: list[Any] = [truth for truth, bit in ((True, Atom.TRUE), (False, Atom.FALSE)) if asked.atoms & bit]
    for part in (asked.numbers, asked.times, asked.bytes):
        points, others = part.points(), (~part).points()
        if points is not None:
            listed += points
        elif not missing or others is None or not all(text_of(value) in values.strings for value in others):
            return False
    if asked.atoms & Atom.NAN and asked.numbers.points() is not None:
        listed.append(math.nan)
    return all(text_of(value) in asked.strings for value in listed)


# --- sets of strings --------------------------------------------------------------------------------------------------


def _side(dimension: Dimension, wanted: Constraint) -> Document:
    name = str(dimension)
    try:
        if MISSING in wanted.values:
            return _not(_strings(name, (~wanted.values).strings))
        return _strings(name, wanted.values.strings)
    except _Unsayable:
        raise _refused(name, wanted) from None


def _strings(name: str, strings: StringSet) -> Document:
    if isinstance(strings, Intervals):
        return _intervals(name, strings)
    return _any(_path(name, *path) for path in strings.paths())


def _path(name: str, fits: Iterable[Pattern], fails: Iterable[Pattern], leaf: Intervals) -> Document:
    parts = [_suffix(name, pattern) for pattern in fits]
    if parts and not leaf.is_full:  # the attribute is there, so what it is not may be said, too
        try:
            parts.append(_intervals(name, leaf))
        except _Unsayable:
            parts.append(_not(_intervals(name, ~leaf)))
    elif not parts:
        parts.append(_intervals(name, leaf))
    return _all([*parts, *(_not(_suffix(name, pattern)) for pattern in fails)])


def _suffix(name: str, pattern: Pattern) -> Document:
    first, *rest = pattern.tokens
    if first is not MANY or pattern.ignore_case or not all(isinstance(token, str) for token in rest):
        raise _Unsayable
    return {"suffix": {name: "".join(map(str, rest))}}


def _intervals(name: str, strings: Intervals, within: int = 0) -> Document:
    """Exact texts, prefixes, and prefixes with holes. Prefixes are longer than `within`, so that holes get smaller."""
    parts: list[Document] = []
    rest = strings
    while not rest.is_empty:
        texts = [text for text in _prefixes(rest) if len(text) > within]
        single = next((point[0] for piece in rest.pieces() if (point := intervals.point(*piece))), None)
        if len(parts) == MAX_PARTS or not (single or texts):
            raise _Unsayable
        if single:
            parts.append({"exact": {name: single}})
            rest -= intervals.points([single])
        else:
            text = min(texts, key=lambda text: _remains(text, rest, strings))
            hole = intervals.prefix(text) - strings
            prefix: Document = {"prefix": {name: text}}
            parts.append(prefix if hole.is_empty else _all([prefix, _not(_intervals(name, hole, len(text)))]))
            rest -= intervals.prefix(text)
    return _any(parts)


def _remains(text: str, rest: Intervals, strings: Intervals) -> tuple[int, int]:
    """How much remains to be said after a prefix, and then of the holes in it."""
    prefix = intervals.prefix(text)
    return len((rest - prefix).cuts), len((prefix - strings).cuts)


def _prefixes(strings: Intervals) -> Iterator[str]:
    """The prefixes that begin or end where a piece of the set does."""
    for low, high in strings.pieces():
        if low is not None:
            yield low[0]
        if high is not None and high[0][-1] != "\0":
            yield high[0][:-1] + chr(ord(high[0][-1]) - 1)


# --- documents --------------------------------------------------------------------------------------------------------


def _any(parts: Iterable[Document]) -> Document:
    listed: list[Document] = []
    listed.extend(part for part in parts if part not in listed)
    return listed[0] if len(listed) == 1 else {"any": listed}


def _all(parts: Iterable[Document]) -> Document:
    """All of the documents; those of one dialect on different attributes in one."""
    listed: list[Document] = []
    for part in parts:
        [(dialect, content)] = part.items()
        same = next((other for other in listed if dialect in other and dialect in ("exact", "prefix", "suffix")), None)
        if same is not None and same[dialect].keys().isdisjoint(content):
            same[dialect] = {**same[dialect], **content}
        else:
            listed += content if dialect == "all" else [dict(part)]
    return listed[0] if len(listed) == 1 else {"all": listed}


def _not(part: Document) -> Document:
    inner: Document = part.get("not", {"not": part})
    return inner
