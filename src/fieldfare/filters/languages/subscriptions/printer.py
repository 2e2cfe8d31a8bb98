"""The printer of CloudEvents filter documents, in the dialects exact, prefix, suffix, all, any and not.

The dialects compare texts, so a filter is first reduced to its conditions on string attributes, and refused if a
condition on other values does not follow. Sets of strings remain: an exact text is a point, a prefix an interval, and
any other interval a prefix with holes, `{"all": [{"prefix": …}, {"not": {"exact": …}}]}`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeAlias

from fieldfare.events.values import MISSING
from fieldfare.filters import intervals, printer
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.languages.cesql.casts import values_of
from fieldfare.filters.languages.cesql.expression import string_of
from fieldfare.filters.languages.subscriptions.attributes import attribute_of, on_attributes, text_in
from fieldfare.filters.patterns import MANY, Pattern
from fieldfare.filters.strings import StringSet

Document: TypeAlias = dict[str, Any]

ATTRIBUTE: Final = re.compile("(?!data$)[a-z0-9]+")
"""the names that CloudEvents allows for attributes"""

MAX_PARTS: Final = 1024
"""exact texts and prefixes for a single set of strings, besides the cuts of the set: ranges may need no end of them"""


class _Unsayable(Exception):  # internal; the reported ValueError names the filter
    """Raised for a set of strings without a document."""


def render(filter: Filter) -> Document | list[Document]:
    """Return the document of a filter, with the same meaning for string attributes and missing attributes.

    A filter that every event matches is the empty list. A filter without a document is a ValueError.

    >>> from fieldfare.filters import parse
    >>> render(parse("type STARTS WITH 'com.' AND source IN ('/a', '/b') AND subject = 'x'"))
    {'all': [{'any': [{'exact': {'source': '/a'}}, {'exact': {'source': '/b'}}]}, {'exact': {'subject': 'x'}},
    {'prefix': {'type': 'com.'}}]}
    """
    texts = Filter(box for branch in filter.branches if (box := _on_texts(branch)) is not None)
    if on_attributes(texts) != filter:  # no document has exactly this meaning, but a document may have it for strings
        _expect_strings(filter)
    if texts.is_empty:
        raise ValueError("cannot be expressed in the CloudEvents dialects: a filter that nothing can match")
    if texts.is_full:
        return []
    return _any(_all(_side(dimension, wanted) for dimension, wanted in branch.items()) for branch in texts.branches)


def _refused(dimension: Dimension, wanted: Constraint) -> ValueError:
    text = printer.render([Branch({dimension: wanted})])
    return ValueError(f"cannot be expressed in the CloudEvents dialects: {text}")


# --- filters on texts -------------------------------------------------------------------------------------------------


def _on_texts(branch: Branch) -> Branch | None:
    """Return the conditions of a branch on texts, as if all attributes were strings; None if no string matches."""
    sides: dict[Dimension, Constraint] = {}
    for dimension, wanted in branch.items():
        name = dimension if isinstance(dimension, str) else attribute_of(dimension)
        if name is None or not ATTRIBUTE.fullmatch(name) or not wanted.is_plain:
            raise _refused(dimension, wanted)
        side = Constraint(text_in(wanted.values.strings, missing=MISSING in wanted.values))
        text = string_of(name)
        sides[text] = sides[text] & side if text in sides else side
    if any(side.is_empty for side in sides.values()):
        return None
    return Branch({text: side for text, side in sides.items() if not side.is_full})


def _expect_strings(filter: Filter) -> None:
    """Refuse conditions on values that are no strings, unless each such value is written as one of the strings.

    If the attribute may be missing, the rule applies to the values outside.
    """
    for dimension, wanted in (side for branch in filter.branches for side in branch.items()):
        inside = ~wanted.values if MISSING in wanted.values else wanted.values
        if isinstance(dimension, str) and not values_of(inside.strings)[0] >= inside:
            raise _refused(dimension, wanted)


# --- sets of strings --------------------------------------------------------------------------------------------------


def _side(dimension: Dimension, wanted: Constraint) -> Document:
    name = attribute_of(dimension)
    assert name is not None
    try:
        if MISSING in wanted.values:
            return _not(_strings(name, (~wanted.values).strings))
        return _strings(name, wanted.values.strings)
    except _Unsayable:
        raise _refused(name, wanted) from None


def _strings(name: str, strings: StringSet) -> Document:
    if isinstance(strings, Intervals):
        return _intervals(name, strings, _unheard(strings))
    return _any(_path(name, *path) for path in strings.paths())


def _path(name: str, fits: Iterable[Pattern], fails: Iterable[Pattern], leaf: Intervals) -> Document:
    parts = [_suffix(name, pattern) for pattern in fits]
    char = _unheard(leaf)
    if not parts or char not in leaf:
        parts.append(_intervals(name, leaf, char))
    elif not leaf.is_full:  # the attribute exists, so that an exclusion suffices
        parts.append(_not(_intervals(name, ~leaf, char)))
    return _all([*parts, *(_not(_suffix(name, pattern)) for pattern in fails)])


def _suffix(name: str, pattern: Pattern) -> Document:
    first, *rest = pattern.tokens
    if first is not MANY or pattern.ignore_case or not all(isinstance(token, str) for token in rest):
        raise _Unsayable
    return {"suffix": {name: "".join(map(str, rest))}}


def _unheard(strings: Intervals) -> str:
    """Return a character that occurs in no text at which the set changes."""
    heard = {ord(char) for text, _ in strings.cuts for char in text}
    return chr(next(code for code in range(sys.maxunicode, 0, -1) if code not in heard))


def _intervals(name: str, strings: Intervals, unheard: str) -> Document:
    most = MAX_PARTS + len(strings.cuts)
    parts = list(islice(_parts(name, strings, unheard), most + 1))
    if len(parts) > most:
        raise _Unsayable
    return _any(parts)


def _parts(name: str, strings: Intervals, unheard: str) -> Iterator[Document]:
    """Yield exact texts, prefixes, and prefixes with holes, in order.

    The next text is in a prefix, with or without holes, if the prefix with an unheard character is in the set. If there
    is no such prefix, the text is exact.
    """
    said: str | None = ""  # everything before
    for low, high in strings.pieces():
        if low is None:  # nothing but the complement of a set holds the empty text
            raise _Unsayable
        while said is not None and (high is None or max(low[0], said) < high[0]):
            text = max(low[0], said)
            prefix = next((start for start in _starts(text) if start + unheard in strings), None)
            if prefix is None:
                yield {"exact": {name: text}}
                said = intervals.successor(text)
            else:
                hole = intervals.prefix(prefix) - strings
                whole: Document = {"prefix": {name: prefix}}
                yield whole if hole.is_empty else _all([whole, _not(_intervals(name, hole, unheard))])
                said = intervals.after_prefix(prefix)


def _starts(text: str) -> Iterator[str]:
    return (text[:end] for end in range(1, len(text) + 1))


# --- documents --------------------------------------------------------------------------------------------------------


def _any(parts: Iterable[Document]) -> Document:
    listed: list[Document] = []
    listed.extend(part for part in parts if part not in listed)
    return listed[0] if len(listed) == 1 else {"any": listed}


def _all(parts: Iterable[Document]) -> Document:
    """Return the conjunction of documents; documents of a dialect on different attributes are joined."""
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
