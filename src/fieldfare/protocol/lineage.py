"""A lineage says in which life of a log each number was given, so that no number has two meanings.

A node begins a *life* of its log, under a random name, at each start, and counts on from the last number on its disk.
After a power failure, or with yesterday's copy of the folder, the disk is further back than others have seen, and the
node gives the same numbers again, to other events. So a number alone is not enough: two numbers are the same only if
both were given in the same life. A part that remembers numbers remembers the lineage, too, and `void_from` says from
which number on the meaning is another by now. (Kafka has the same idea: leader epochs, each with its first offset.)

Here a lineage is a tuple of lives, each with the first number given in the life. A life has a single beginning: two
lineages with a common life agree on all numbers before the beginning of the life.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Final, TypeAlias

Lineage: TypeAlias = tuple[tuple[str, int], ...]

MOST: Final = 32
"""lives that are remembered; who knows only earlier ones has to begin anew"""


def as_lineage(stored: Iterable[Iterable[str | int]]) -> Lineage:
    """A lineage as it was stored, in lists.

    >>> as_lineage([["a", 1], ["b", 101]])
    (('a', 1), ('b', 101))
    """
    return tuple((str(life), int(first)) for life, first in stored)


def extend(lineage: Lineage, life: str, first: int) -> Lineage:
    """The lineage when numbers from `first` on are given in a life.

    >>> extend((("a", 1),), "b", 101)
    (('a', 1), ('b', 101))
    >>> extend((("a", 1), ("b", 101)), "c", 101)  # nothing was counted in b
    (('a', 1), ('c', 101))
    >>> extend((("a", 1),), "a", 7)  # it goes on
    (('a', 1),)
    """
    if lineage and lineage[-1][0] == life:
        return lineage
    return (*(one for one in lineage if one[1] < first), (life, first))[-MOST:]


def life_of(lineage: Lineage, number: int) -> str:
    """The life in which a number was given; empty if the life is not known any more.

    >>> life_of((("a", 1), ("b", 101)), 100)
    'a'
    """
    return next((life for life, first in reversed(lineage) if first <= number), "")


def void_from(known: Lineage, present: Lineage) -> int:
    """The first number with another meaning in the present lineage than in a known lineage; 0 if there is none.

    >>> void_from((("a", 1),), (("a", 1), ("b", 101)))  # b counts on behind 100, whatever was 101 in a
    101
    >>> void_from((("a", 1), ("b", 96)), (("a", 1), ("c", 101)))  # b had begun at 96 already
    96
    >>> void_from((("a", 1), ("b", 101)), (("a", 1), ("b", 101)))
    0
    >>> void_from((("x", 1),), (("a", 1),))
    1
    """
    if not known:
        return 0
    lives = dict(known)
    last = next((life for life, _ in reversed(present) if life in lives), None)
    if last is None:
        return 1
    ends = [first for lineage in (known, present) for (life, _), (_, first) in pairwise(lineage) if life == last]
    return min(ends, default=0)


def still_valid(number: int, known: Lineage, present: Lineage) -> int:
    """The last number, up to a given number, with the same meaning in both lineages.

    >>> still_valid(150, (("a", 1),), (("a", 1), ("b", 101)))
    100
    """
    void = void_from(known, present)
    return number if void == 0 else min(number, void - 1)
