"""`Pair`: a condition that can fail, as two filters, and the logic of such conditions.

CESQL evaluates AND and OR from left to right and stops when the outcome is clear: `a OR b` is true where `a` is true,
and where `a` is false and `b` true, but not where `a` fails. NOT swaps the two sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.filter import NOTHING, Filter

MOST_BRANCHES: Final = 32
"""limit on the branches of a conjunction: more would be slow, and of little use in an index"""


class Pair(NamedTuple):
    """The events for which a condition is true and for which false; for all other events the condition is in error."""

    true: Filter
    false: Filter


NEVER: Final = Pair(NOTHING, NOTHING)


def negated(pair: Pair, is_negated: bool = True) -> Pair:
    """Return the negation of a pair, or the pair if `is_negated` is false."""
    return Pair(pair.false, pair.true) if is_negated else pair


def combined(op: str, pairs: Sequence[Pair]) -> Pair:
    """Join conditions by AND, OR or XOR. The order counts but not the grouping; halving keeps a long list n log n."""
    if len(pairs) == 1:
        return pairs[0]
    half = len(pairs) // 2
    return _LOGIC[op](combined(op, pairs[:half]), combined(op, pairs[half:]))


def _and(a: Pair, b: Pair) -> Pair:
    return Pair(_both(a.true, b.true), a.false | _both(a.true, b.false))


def _or(a: Pair, b: Pair) -> Pair:
    return negated(_and(negated(a), negated(b)))


def _xor(a: Pair, b: Pair) -> Pair:
    true = _both(a.true, b.false) | _both(a.false, b.true)
    return Pair(true, _both(a.true, b.true) | _both(a.false, b.false))


_LOGIC: Final[dict[str, Callable[[Pair, Pair], Pair]]] = {"AND": _and, "OR": _or, "XOR": _xor}


def _both(a: Filter, b: Filter) -> Filter:
    if len(a.boxes) * len(b.boxes) > MOST_BRANCHES:
        raise FilterTooComplex(f"a conjunction with more than {MOST_BRANCHES} alternatives")
    return a & b
