"""The condition of a rule, `selection and not 1 of filter_*`, as a tree over the names of detections.

`not` binds tighter than `and`, `and` tighter than `or`. `1 of`, `2 of` and `all of` count the detections whose names
fit a pattern; `them` are all detections whose names do not begin with `_`. The pipe of Sigma's first version, `|
count() > 5`, is an aggregation and no filter.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from fieldfare.filters.errors import FilterSyntaxError

MAX_DEPTH: Final = 64
"""levels of parentheses and `not`; the reader and the walks over the tree recurse"""
_AGGREGATION: Final = "an aggregation, such as | count() > 5, is no filter"
_TOKEN: Final = re.compile(r"\s*(?:(?P<word>[\w.*?-]+)|(?P<sign>[()|])|(?P<other>\S))")


@dataclass(frozen=True, slots=True)
class Detection:
    """A detection, by name: true of an event that fits its items."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not hold."""

    part: Condition


@dataclass(frozen=True, slots=True)
class AtLeast:
    """So many of the parts hold: all of them is `and`, one is `or`."""

    least: int
    parts: tuple[Condition, ...]


Condition: TypeAlias = Detection | Not | AtLeast


def parse(text: str, names: Collection[str]) -> Condition:
    """Return the tree of a condition over detections of these names.

    >>> parse("a and not 1 of b*", ["a", "b1", "b2"])  # doctest: +NORMALIZE_WHITESPACE
    AtLeast(least=2, parts=(Detection(name='a'),
        Not(part=AtLeast(least=1, parts=(Detection(name='b1'), Detection(name='b2'))))))
    """
    reader = _Reader(text, names)
    found = reader.either(0)
    if reader.word == "|":
        reader.fail(_AGGREGATION)
    if reader.word or reader.position < len(text.rstrip()):
        reader.fail(f"expected and, or, or the end, found {reader.word!r}")
    return found


class _Reader:
    """A position in the text of a condition, moved word by word."""

    def __init__(self, text: str, names: Collection[str]) -> None:
        self._text, self._names = text, names
        self._end = 0
        self.advance()

    def advance(self) -> None:
        """Go to the next word; at the end the word is empty."""
        found = _TOKEN.match(self._text, self._end)
        self.word, self.position = "", len(self._text.rstrip())
        if found:
            self.word, self.position, self._end = found[found.lastgroup or 0], found.end() - 1, found.end()
            self.position = found.start(found.lastgroup or 0)

    def fail(self, problem: str) -> None:
        """Raise the error for a problem at the present word."""
        raise FilterSyntaxError(self._text, self.position, problem)

    def either(self, depth: int) -> Condition:
        """Read parts that `or` joins."""
        return self._joined("or", depth)

    def _joined(self, operator: str, depth: int) -> Condition:
        parts = [self._joined("and", depth) if operator == "or" else self._single(depth)]
        while self.word.lower() == operator:
            self.advance()
            parts.append(self._joined("and", depth) if operator == "or" else self._single(depth))
        if len(parts) == 1:
            return parts[0]
        return AtLeast(1 if operator == "or" else len(parts), tuple(parts))

    def _single(self, depth: int) -> Condition:
        if depth > MAX_DEPTH:
            self.fail("the condition is nested too deeply")
        word, lower = self.word, self.word.lower()
        if lower == "not":
            self.advance()
            return Not(self._single(depth + 1))
        if word == "(":
            self.advance()
            inside = self.either(depth + 1)
            if self.word != ")":
                self.fail(f"expected ), found {self.word or 'the end'!r}")
            self.advance()
            return inside
        if word in self._names:
            self.advance()
            return Detection(word)
        if lower in ("all", "any") or (word.isascii() and word.isdigit()):
            return self._several({"all": 0, "any": 1}.get(lower) if not word.isdigit() else int(word))
        self.fail(f"there is no detection {word!r}" if word else "expected the name of a detection, found the end")
        raise AssertionError

    def _several(self, least: int | None) -> Condition:
        """Read the rest of `1 of PATTERN`; 0 stands for all."""
        self.advance()
        if self.word.lower() != "of":
            self.fail(f"expected of, found {self.word or 'the end'!r}")
        self.advance()
        pattern = self.word
        if pattern.lower() == "them" and "them" not in self._names:
            fitting = [name for name in self._names if not name.startswith("_")]
        else:
            fitting = [name for name in self._names if fnmatchcase(name, pattern)]
        if not fitting:
            self.fail(f"no detection has a name like {pattern!r}" if pattern else "expected a pattern of names")
        wanted = least or len(fitting)
        if wanted > len(fitting):
            self.fail(f"{wanted} detections are wanted, but {len(fitting)} have names like {pattern!r}")
        self.advance()
        return AtLeast(wanted, tuple(map(Detection, fitting)))
