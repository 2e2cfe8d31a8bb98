"""Relations of two filters: cover, overlap, and the filter that both merge into."""

from __future__ import annotations

from dataclasses import dataclass

from fieldfare.filters import Filter, FilterTooComplex


@dataclass(frozen=True, slots=True)
class Relation:
    """The relation of a filter to another filter."""

    name: str
    other: str
    relation: str
    """equals, covers, is covered by, overlaps or disjoint"""
    merger: str | None
    """a filter that covers both; None if the merger exceeds the limits"""
    perfect: bool
    """whether the merger is exactly the union"""
    precision: float
    """the share of the merger's events that match one of the two filters; estimated unless perfect"""


@dataclass(frozen=True, slots=True)
class Covering:
    """The answer whether a filter covers another, with the reason."""

    wide: str
    narrow: str
    holds: bool
    reason: str


def relate(mine: Filter, other: Filter, name: str) -> Relation:
    """Return the relation of two filters, with their merger."""
    merger, perfect, precision = _merger(mine, other)
    return Relation(name, str(other), relation(mine, other), merger, perfect, precision)


def relation(mine: Filter, other: Filter) -> str:
    """Return the strongest relation of two filters, as a word.

    >>> from fieldfare.filters import parse
    >>> relation(parse("price < 10"), parse("price < 5"))
    'covers'
    """
    covers, covered = mine.covers(other), other.covers(mine)
    if covers and covered:
        return "equals"
    if covers or covered:
        return "covers" if covers else "is covered by"
    return "overlaps" if mine.overlaps(other) else "disjoint"


def covering(wide: Filter, narrow: Filter) -> Covering:
    """Tell whether every event that matches `narrow` matches `wide`; the reason has a counterexample."""
    if wide.covers(narrow):
        reason = f"every event that matches {narrow} matches {wide}"
    else:
        reason = _counterexample(wide, narrow)
    return Covering(str(wide), str(narrow), wide.covers(narrow), reason)


def _counterexample(wide: Filter, narrow: Filter) -> str:
    try:
        left = narrow - wide
    except FilterTooComplex:
        return "what is left over is too complex to be said"
    if left.is_empty:
        return "it could not be proved: what is computed cannot always be analysed"
    return f"left over is {left}"


def _merger(mine: Filter, other: Filter) -> tuple[str | None, bool, float]:
    try:
        union = mine.merge(other)
        if union is not None:
            return str(union), True, 1.0
        merged = mine.merge_imperfect(other)
    except FilterTooComplex:
        return None, False, 0.0
    return str(merged.filter), merged.exact, merged.precision
