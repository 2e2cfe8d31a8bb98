"""CESQL casts attributes to strings: which values become a given text, and which kinds may become one of a pattern.

A set of strings says at once what it wants of string attributes. These functions say what it wants of the others: of
integers and bools, and of the numbers, timestamps and bytes that CESQL takes for strings.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import Final

from fieldfare.events.values import Kind, Scalar, parse_timestamp
from fieldfare.filters import valueset
from fieldfare.filters.languages.cesql_eval import attribute
from fieldfare.filters.patterns import Pattern
from fieldfare.filters.valueset import Atom, ValueSet, whole

SEEN: Final = valueset.PRESENT - ValueSet(atoms=Atom.NULL | Atom.LIST | Atom.OBJECT)
"""the values that CESQL sees; an attribute with any other counts as missing"""

_CHARACTERS: Final = {
    Kind.NUMBER: frozenset("0123456789+-.einfa"),
    Kind.TIME: frozenset("0123456789-T:.Z"),
    Kind.BYTES: frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="),
}
_READERS: Final[tuple[Callable[[str], Scalar], ...]] = (int, float, parse_timestamp, b64decode)


def text_of(value: Scalar) -> str:
    """A value that CESQL sees, cast to a string."""
    seen = attribute({"x": value}, "x")
    return str(seen).lower() if isinstance(seen, bool) else str(seen)


def spelt(text: str) -> list[Scalar]:
    r"""Every value that, cast to a string, is the text.

    >>> spelt("5"), spelt("true"), spelt("2026-11-15T09:30:00.500Z")
    (['5', 5, 5.0], ['true', True, b'\xb6\xbb\x9e'], ['2026-11-15T09:30:00.500Z'])
    """
    return [value for value in _readings(text) if text_of(value) == text]


def _readings(text: str) -> Iterator[Scalar]:
    yield from (text, True, False)
    for reader in _READERS:
        try:
            yield reader(text)
        except ValueError:
            continue


def one_of(values: Iterable[Scalar]) -> ValueSet:
    """Just these values. Other than elsewhere NaN is one like others: CESQL takes it for the string 'nan'."""
    listed = list(values)
    return valueset.one_of(listed) | (valueset.NAN if any(value != value for value in listed) else valueset.EMPTY)


def is_string(value: Scalar) -> bool:
    """Does CESQL take the value for a string?"""
    return isinstance(attribute({"x": value}, "x"), str)


def matching(pattern: Pattern) -> tuple[ValueSet, ValueSet]:
    """The strings and bools that match, and the kinds of which some values may: those written with such characters."""
    if all(isinstance(token, str) for token in pattern.tokens):
        return one_of(spelt("".join(map(str, pattern.tokens)))), valueset.EMPTY
    strings = valueset.like(pattern)
    if strings.strings.is_full:
        return SEEN, valueset.EMPTY
    literals = {token for token in pattern.tokens if isinstance(token, str)}
    kinds = (whole(kind) for kind, characters in _CHARACTERS.items() if literals <= characters)
    truths = [truth for truth in (True, False) if pattern.matches(text_of(truth))]
    return strings | valueset.one_of(truths), reduce(ValueSet.__or__, kinds, valueset.EMPTY)
