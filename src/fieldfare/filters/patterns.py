"""`Pattern`: a LIKE pattern, for sets of strings beyond intervals.

A pattern is a sequence of characters and the wildcards `ONE` (any character, `_`) and `MANY` (any characters, `%`). A
pattern is kept in normal form, so that `'%%_'` and `'_%'` are the same pattern, and matches in linear time: no regular
expression with several stars, which would backtrack, and none with a long run of characters, which would restart at
each place.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeAlias


class Wild(enum.Enum):
    """A wildcard of a LIKE pattern: any character, or any characters."""

    ONE = "_"
    MANY = "%"


ONE: Final = Wild.ONE
MANY: Final = Wild.MANY
Token: TypeAlias = str | Wild
SHORT: Final = 8
"""characters of a run that may be tried at each place of a text"""


def case_variants(char: str) -> frozenset[str]:
    """Return the characters that equal `char` when case is ignored."""
    family = {char, char.lower(), char.upper(), char.upper().lower(), char.lower().upper()}
    return frozenset(other for other in family if len(other) == 1)


@dataclass(frozen=True)
class Pattern:
    """A sequence of characters and wildcards in normal form.

    >>> like("A%").matches("Apple"), like("%x%").matches("Apple"), like("_p%", ignore_case=True).matches("APPLE")
    (True, False, True)
    """

    tokens: tuple[Token, ...]
    ignore_case: bool = False

    @property
    def text(self) -> str:
        """The pattern as LIKE writes patterns."""
        return "".join(escape(token) if isinstance(token, str) else token.value for token in self.tokens)

    @property
    def sort_key(self) -> tuple[str, bool]:
        """A key for a total order, so that sets of patterns have a normal form."""
        return self.text, self.ignore_case

    @cached_property
    def piece(self) -> str:
        """The text between two `%` that is the whole pattern, or ""."""
        inside = self.tokens[1:-1]
        if len(self.tokens) < 3 or (self.tokens[0], self.tokens[-1]) != (MANY, MANY):
            return ""
        return "".join(map(str, inside)) if all(isinstance(token, str) for token in inside) else ""

    @cached_property
    def _lower(self) -> Pattern | None:
        """The pattern for ASCII texts in lower case, if that is the same question."""
        if not self.ignore_case or not all(token.isascii() for token in self.tokens if isinstance(token, str)):
            return None
        return Pattern(tuple(token.lower() if isinstance(token, str) else token for token in self.tokens))

    @cached_property
    def _runs(self) -> tuple[Run, ...]:
        """The runs of characters and `_` between the `%`."""
        parts: list[list[Token]] = [[]]
        for token in self.tokens:
            if token is MANY:
                parts.append([])
            else:
                parts[-1].append(token)
        return tuple(Run(part, self.ignore_case) for part in parts)

    def matches(self, text: str) -> bool:
        """Tell whether the whole text matches, in linear time.

        The first and the last run are anchored; the others are found leftmost first.
        """
        if self.ignore_case and text.isascii() and self._lower is not None:
            return self._lower.matches(text.lower())
        first, *middle = self._runs
        if not middle:
            return first.length == len(text) and first.fits(text, 0)
        if first.length > len(text) or not first.fits(text, 0):
            return False
        place = first.length
        *middle, last = middle
        for run in middle:
            place = run.find(text, place)
            if place < 0:
                return False
        tail = len(text) - last.length
        return tail >= place and last.fits(text, tail)


class Run:
    """A run of characters and `_`, searched in a text in time linear in the text.

    A regular expression would try each place anew, which takes time in the product of the lengths. A plain run is found
    by `str.find`, which is linear; a short run may be tried at each place; for any other run, a number holds a bit for
    each prefix of the run that the text read so far ends with (Shift-And).
    """

    __slots__ = ("_anyhow", "_masks", "_regex", "_text", "_tokens", "length")

    def __init__(self, tokens: Sequence[Token], ignore_case: bool) -> None:
        self.length: Final = len(tokens)
        self._tokens = tuple(_variants(token, ignore_case) for token in tokens)
        plain = not ignore_case and ONE not in tokens
        self._text: Final = "".join(map(str, tokens)) if plain else None
        short = self._text is None and len(tokens) <= SHORT
        self._regex: Final = re.compile("".join(map(_regex, self._tokens)), re.DOTALL) if short else None
        self._masks: Final[dict[str, int]] = {}
        self._anyhow = 0
        if self._text is None and not short:
            self._anyhow = sum(1 << place for place, chars in enumerate(self._tokens) if chars is None)
            for place, chars in enumerate(self._tokens):
                for char in chars or ():
                    self._masks[char] = self._masks.get(char, self._anyhow) | 1 << place

    def fits(self, text: str, place: int) -> bool:
        """Tell whether the run stands at a place; the text must reach that far."""
        if self._text is not None:
            return text.startswith(self._text, place)
        here = text[place : place + self.length]
        return all(chars is None or char in chars for chars, char in zip(self._tokens, here, strict=True))

    def find(self, text: str, place: int) -> int:
        """Return the end of the first occurrence from a place on, or -1."""
        if self._text is not None:
            found = text.find(self._text, place)
            return found + self.length if found >= 0 else -1
        if self._regex is not None:
            match = self._regex.search(text, place)
            return match.end() if match else -1
        begun, end, masks, anyhow = 0, 1 << (self.length - 1), self._masks, self._anyhow
        for at in range(place, len(text)):
            begun = (begun << 1 | 1) & masks.get(text[at], anyhow)
            if begun & end:
                return at + 1
        return -1


def _variants(token: Token, ignore_case: bool) -> frozenset[str] | None:
    """Return the characters that a token matches; None for all."""
    if not isinstance(token, str):
        return None
    return case_variants(token) if ignore_case else frozenset({token})


def _regex(chars: frozenset[str] | None) -> str:
    return "." if chars is None else "[" + "".join(map(re.escape, sorted(chars))) + "]"


def pattern(*tokens: Token, ignore_case: bool = False) -> Pattern:
    """Return a pattern in normal form: in a row of wildcards every `_` comes first and at most one `%` last."""
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
    """Return the pattern of a LIKE text: `%` any characters, `_` any character, a backslash escapes the next."""
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
    """Return a LIKE pattern that matches only the text."""
    return re.sub(r"([%_\\])", r"\\\1", text)
