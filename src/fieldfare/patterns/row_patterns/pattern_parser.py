"""The parser of PATTERN: a regular expression over variables.

A B          A, then B                     A | B      either, A preferred
A* A+ A?     repetition, as many as possible; a further `?` prefers few
A{2} A{2,} A{2,5} A{,5}
(A B)        grouping                      ()         the empty pattern
^ $          start and end of the partition
{- A -}      the rows of A are not in the output
PERMUTE(A, B)    in any order, A B preferred
"""

from __future__ import annotations

from typing import Final

from fieldfare.patterns.row_patterns.syntax import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Variable,
)
from fieldfare.patterns.row_patterns.tokens import Tokens, variable

MAX_DEPTH: Final = 50
"""levels of parentheses"""
_ENDS: Final = frozenset({")", "-}", "|", ",", ""})


def parse_pattern(tokens: Tokens, depth: int = 0) -> Pattern:
    """Read a pattern up to the sign that closes it."""
    if depth > MAX_DEPTH:
        tokens.fail(f"the pattern is nested deeper than {MAX_DEPTH} levels")
    ways = [_sequence(tokens, depth)]
    while tokens.accept("|"):
        ways.append(_sequence(tokens, depth))
    return ways[0] if len(ways) == 1 else Alternation(tuple(ways))


def _sequence(tokens: Tokens, depth: int) -> Pattern:
    parts: list[Pattern] = []
    while tokens.now.kind in ("name", "quoted") or tokens.now.word not in _ENDS:
        parts.append(_repeated(tokens, depth))
    if not parts:
        tokens.fail(f"expected a pattern variable, '(', '{{-', '^' or '$', found {tokens.found}")
    return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))


def _repeated(tokens: Tokens, depth: int) -> Pattern:
    part = _primary(tokens, depth)
    at = tokens.now.at
    if tokens.accept("*"):
        low, high = 0, None
    elif tokens.accept("+"):
        low, high = 1, None
    elif tokens.accept("?"):
        low, high = 0, 1
    elif tokens.accept("{"):
        low, high = _bounds(tokens)
        if high is not None and high < 1:
            tokens.fail("the upper bound of a repetition must be at least 1", at)
        if high is not None and high < low:
            tokens.fail(f"the lower bound {low} exceeds the upper bound {high}", at)
    else:
        return part
    return Repetition(part, low, high, greedy=not tokens.accept("?"))


def _bounds(tokens: Tokens) -> tuple[int, int | None]:
    low = None if tokens.comes(",") else tokens.integer("a number of repetitions")
    if low is not None and tokens.accept("}"):
        return low, low
    tokens.expect(",")
    high = None if tokens.comes("}") else tokens.integer("a number of repetitions")
    tokens.expect("}")
    return low or 0, high


def _primary(tokens: Tokens, depth: int) -> Pattern:
    if tokens.accept("("):
        if tokens.accept(")"):
            return Concatenation()
        part = parse_pattern(tokens, depth + 1)
        tokens.expect(")")
        return part
    if tokens.accept("{-"):
        part = parse_pattern(tokens, depth + 1)
        tokens.expect("-}")
        return Exclusion(part)
    if tokens.comes("^") or tokens.comes("$"):
        return Anchor(end=tokens.take().word == "$")
    if tokens.accept("PERMUTE", "("):
        parts = [parse_pattern(tokens, depth + 1)]
        while tokens.accept(","):
            parts.append(parse_pattern(tokens, depth + 1))
        tokens.expect(")")
        return Permutation(tuple(parts))
    token = tokens.name("a pattern variable")
    return Variable(variable(token), token.at)
