"""How two filters stand to each other: which holds which, whether they meet, and what they merge into."""

from __future__ import annotations

from dataclasses import dataclass

from fieldfare.filters import Filter, FilterTooComplex


@dataclass(frozen=True, slots=True)
class Relation:
    """One filter beside another."""

    name: str
    other: str
    relation: str
    """equals, covers, is covered by, overlaps or disjoint"""
    merger: str | None
    """a filter that holds both; None if there is none within the limits"""
    perfect: bool
    """does the merger hold nothing else?"""
    precision: float
    """the share of what the merger lets through that one of the two lets through; estimated unless perfect"""


@dataclass(frozen=True, slots=True)
class Covering:
    """Whether one filter covers another, and why."""

    wide: str
    narrow: str
    holds: bool
    reason: str


def relate(mine: Filter, other: Filter, name: str) -> Relation:
    """Everything there is to say about two filters."""
    merger, perfect, precision = _merger(mine, other)
    return Relation(name, str(other), relation(mine, other), merger, perfect, precision)


def relation(mine: Filter, other: Filter) -> str:
    """The one word that says most.

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
    """Does every event that matches `narrow` match `wide`? If not, which do not?"""
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
