"""Casts of CESQL to strings: the values that become a given text, and the kinds that may become a text of a set.

A set of strings directly constrains string attributes. The functions here derive the constraint on the others: on
integers and bools, and on the numbers, timestamps and bytes that CESQL takes for strings.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from fieldfare.events.values import Kind, Scalar, parse_timestamp
from fieldfare.filters import valueset
from fieldfare.filters.automaton import words
from fieldfare.filters.budget import remembered
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.languages.cesql.evaluation import attribute
from fieldfare.filters.strings import StringSet, machine_of
from fieldfare.filters.valueset import Atom, ValueSet, whole

SEEN: Final = valueset.PRESENT - ValueSet(atoms=Atom.NULL | Atom.LIST | Atom.OBJECT)
"""the values that CESQL sees; an attribute with any other value counts as missing"""

_CHARACTERS: Final = {
    Kind.NUMBER: "+-.0123456789aefin",
    Kind.TIME: "-.0123456789:TZ",
    Kind.BYTES: "+/0123456789=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
}
"""the characters in the texts of a kind, sorted"""
_TRUTHS: Final = ("true", "false")
_FEW: Final = 64
"""strings of a kind that are listed one by one"""
_READERS: Final[tuple[Callable[[str], Scalar], ...]] = (int, float, parse_timestamp, b64decode)


def text_of(value: Scalar) -> str:
    """Return a value, cast to a string as CESQL casts."""
    seen = attribute({"x": value}, "x")
    return str(seen).lower() if isinstance(seen, bool) else str(seen)


def spelt(text: str) -> list[Scalar]:
    r"""Return every value whose cast to a string is the text.

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
    """Return the set of the given values. NaN is a value like others here: CESQL takes NaN for the string 'nan'."""
    listed = list(values)
    return valueset.one_of(listed) | (valueset.NAN if any(value != value for value in listed) else valueset.EMPTY)


def is_string(value: Scalar) -> bool:
    """Tell whether CESQL takes the value for a string."""
    return isinstance(attribute({"x": value}, "x"), str)


@remembered(4096)
def values_of(texts: StringSet) -> tuple[ValueSet, ValueSet]:
    """Return the values whose casts to strings surely are in the set, and the kinds with undecided values.

    A kind is decided if the set contains only a few strings of the characters of the kind, or all but a few.
    """
    listed = texts.points() if isinstance(texts, Intervals) else None
    if listed is not None:
        return _spelt(listed), valueset.EMPTY
    machine = machine_of(texts)
    sure, odd = ValueSet(strings=texts) | _spelt(text for text in _TRUTHS if text in texts), valueset.EMPTY
    for kind, characters in _CHARACTERS.items():
        if (inside := words(machine, characters, _FEW)) is not None:
            sure |= _spelt(inside)
        elif (outside := words(machine, characters, _FEW, accepted=False)) is not None:
            sure |= whole(kind) - _spelt(outside)
        else:
            odd |= whole(kind)
    return sure, odd


def _spelt(texts: Iterable[str]) -> ValueSet:
    return one_of(value for text in texts for value in spelt(text))
