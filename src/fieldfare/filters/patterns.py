"""`Pattern`: what LIKE can say about a string beyond an interval.

A pattern is a sequence of characters and the wildcards `ONE` (any character, `_`) and `MANY` (any characters, `%`).
It is kept normalised, so that `'%%_'` and `'_%'` are one pattern, and matched in linear time: no regular expression
with several stars, which would backtrack.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias


class Wild(enum.Enum):
    """A wildcard."""

    ONE = "_"
    MANY = "%"


ONE: Final = Wild.ONE
MANY: Final = Wild.MANY
Token: TypeAlias = str | Wild


def case_variants(char: str) -> frozenset[str]:
    """The characters that count as `char` when case is ignored."""
    family = {char, char.lower(), char.upper(), char.upper().lower(), char.lower().upper()}
    return frozenset(other for other in family if len(other) == 1)


@dataclass(frozen=True)
class Pattern:
    """A normalised sequence of characters and wildcards.

    >>> like("A%").matches("Apple"), like("%x%").matches("Apple"), like("_p%", ignore_case=True).matches("APPLE")
    (True, False, True)
    """

    tokens: tuple[Token, ...]
    ignore_case: bool = False

    @property
    def text(self) -> str:
        """The pattern as LIKE writes it."""
        return "".join(escape(token) if isinstance(token, str) else token.value for token in self.tokens)

    @property
    def sort_key(self) -> tuple[str, bool]:
        """A total order, so that sets of patterns have a normal form."""
        return self.text, self.ignore_case

    @cached_property
    def _segments(self) -> tuple[re.Pattern[str], ...]:
        return tuple(
            re.compile("".join(_regex(token, self.ignore_case) for token in part), re.DOTALL) for part in self._parts()
        )

    def _parts(self) -> Iterator[list[Token]]:
        """The runs between one `%` and the next."""
        part: list[Token] = []
        for token in self.tokens:
            if token is MANY:
                yield part
                part = []
            else:
                part.append(token)
        yield part

    def matches(self, text: str) -> bool:
        """Does the whole text fit? Linear: the first run is anchored, the last too, the others found leftmost first."""
        first, *middle = self._segments
        if not middle:
            return first.fullmatch(text) is not None
        head = first.match(text)
        if head is None:
            return False
        place = head.end()
        *middle, last = middle
        for segment in middle:
            found = segment.search(text, place)
            if found is None:
                return False
            place = found.end()
        tail = len(text) - self._tail_length
        return tail >= place and last.fullmatch(text, tail) is not None

    @cached_property
    def _tail_length(self) -> int:
        *_, last = self._parts()
        return len(last)


def _regex(token: Token, ignore_case: bool) -> str:
    if not isinstance(token, str):
        return "."
    variants = case_variants(token) if ignore_case else {token}
    return re.escape(token) if len(variants) == 1 else "[" + "".join(map(re.escape, sorted(variants))) + "]"


def pattern(*tokens: Token, ignore_case: bool = False) -> Pattern:
    """A pattern in normal form: in a run of wildcards every `_` comes first and at most one `%` last."""
    normal: list[Token] = []
    for token in tokens:
        if token is MANY and normal and normal[-1] is MANY:
            continue
        if token is ONE and normal and normal[-1] is MANY:
            normal.insert(len(normal) - 1, ONE)
        else:
            normal.append(token)
    cased = any(isinstance(token, str) and len(case_variants(token)) > 1 for token in normal)
    return Pattern(tuple(normal), ignore_case and cased)


def like(text: str, *, ignore_case: bool = False) -> Pattern:
    r"""The pattern of a LIKE text: `%` any characters, `_` one character, a backslash takes the next as it is."""
    return pattern(*_like_tokens(text), ignore_case=ignore_case)


def _like_tokens(text: str) -> Iterator[Token]:
    chars = iter(text)
    for char in chars:
        if char == "%":
            yield MANY
        elif char == "_":
            yield ONE
        elif char == "\\":
            escaped = next(chars, "\\")
            if escaped not in "%_\\":
                yield char
            yield escaped
        else:
            yield char


def escape(text: str) -> str:
    """Text for a LIKE pattern that means just itself."""
    return re.sub(r"([%_\\])", r"\\\1", text)
