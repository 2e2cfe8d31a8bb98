"""Clues: pieces of text, one of which an event must contain to satisfy a branch.

Every constraint on the strings of a field is a choice of patterns, and a choice of patterns is a choice of pieces: the
longest run of characters of each. The best clue of a branch is the one whose shortest piece is longest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from fieldfare.filters import valueset
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.expressions import Call, Field, Literal
from fieldfare.filters.functions import ILIKE_ANY, LIKE_ANY
from fieldfare.filters.patterns import Pattern, case_variants, like
from fieldfare.filters.strings import Language
from fieldfare.filters.valueset import Atom
from fieldfare.matching.match.substrings import Substring

_SHORTEST: Final = 2
"""characters of a piece at least"""


def best_clue(branch: Branch) -> tuple[Substring, ...]:
    """Return the pieces of the best clue; empty if there is none."""
    clues = [clue for dimension, wanted in branch.items() for clue in _clues(dimension, wanted) if clue]
    return max(clues, key=_worth, default=())


def _worth(clue: tuple[Substring, ...]) -> tuple[int, int]:
    return min(len(one.text) for one in clue), -len(clue)


def _clues(dimension: Dimension, wanted: Constraint) -> Iterator[tuple[Substring, ...]]:
    if isinstance(dimension, str):
        values = wanted.values
        part = values.strings
        if not values.atoms & ~Atom.LIST and isinstance(part, Language) and sum(1 for _ in values.kinds()) == 1:
            ways = [fits for fits, _, _ in part.paths()]
            if len(ways) == 1:
                yield from ((one,) for pattern in ways[0] for one in _pieces(dimension, [pattern]))
            else:
                yield _pieces(dimension, [max(fits, key=_reach) if fits else None for fits in ways])
    elif isinstance(dimension, Call) and dimension.function in (LIKE_ANY, ILIKE_ANY) and wanted.values == valueset.TRUE:
        match dimension.arguments:
            case (Field(path), *patterns):
                texts = [str(one.value) for one in patterns if isinstance(one, Literal)]
                if len(texts) == len(patterns):
                    yield _pieces(path, [like(text, ignore_case=dimension.function is ILIKE_ANY) for text in texts])


def _reach(pattern: Pattern) -> int:
    return len(_longest(pattern))


def _pieces(path: str, patterns: Iterable[Pattern | None]) -> tuple[Substring, ...]:
    """Return a piece of each pattern; nothing if a pattern has none."""
    found: dict[Substring, None] = {}
    for pattern in patterns:
        text = _longest(pattern) if pattern is not None else ""
        if pattern is None or len(text) < _SHORTEST:
            return ()
        found[Substring(path, text, pattern.ignore_case)] = None
    return tuple(found)


def _longest(pattern: Pattern) -> str:
    """Return the longest run of characters, folded if the pattern ignores case."""
    chars = (_known(token, pattern.ignore_case) if isinstance(token, str) else "\0" for token in pattern.tokens)
    return max("".join(chars).split("\0"), key=len)


def _known(char: str, ignore_case: bool) -> str:
    """Return the folded character; a character with a variant that folds in another way ends the run."""
    if not ignore_case:
        return char
    folded = char.casefold()
    return folded if all(other.casefold() == folded for other in case_variants(char)) else "\0"
