"""`Ring`: names and topics as numbers on a ring, and the node nearest to a number.

Every name has an id and every topic a key, both hashes, so that they spread evenly. The owner of a key is the node with
the numerically nearest id, where the two ends of the ring are neighbours. `owner` and `closest` look at all names: they
define the result for an overlay in which no node knows all names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from heapq import nsmallest


@lru_cache(maxsize=100_000)
def node_id(name: str) -> int:
    """Return the 128-bit id of a node."""
    return _hash(name, b"node")


def key_of(topic: str) -> int:
    """Return the 128-bit key of a topic, such as a type of events; unrelated to the id of a node with the same name."""
    return _hash(topic, b"topic")


def _hash(text: str, kind: bytes) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=16, person=kind).digest())


@dataclass(frozen=True, slots=True)
class Ring:
    """Numbers of some bits on a ring, read as digits of `digit_bits` each (the *b* of Pastry).

    >>> ring = Ring(bits=6, digit_bits=2, identify=lambda name: int(name, 4))
    >>> ring.distance(1, 63), ring.shared(0o01, 0o03), ring.digit(ring.id("123"), 1)
    (2, 2, 2)
    >>> ring.owner(["123", "311", "020"], 0o77)
    '020'
    """

    bits: int = 128
    digit_bits: int = 4
    identify: Callable[[str], int] = node_id
    """gives each name a number of its own below 2^bits"""

    def __post_init__(self) -> None:
        if self.digit_bits < 1 or self.bits % self.digit_bits:
            raise ValueError(f"{self.bits} bits are no whole number of digits of {self.digit_bits} bits")

    def id(self, name: str) -> int:
        """Return the number of a node on the ring."""
        return self.identify(name)

    def ahead(self, start: int, end: int) -> int:
        """Return the distance from a number upwards to another, across the top if need be."""
        return (end - start) % (1 << self.bits)

    def distance(self, one: int, other: int) -> int:
        """Return the shorter distance between two numbers."""
        return min(self.ahead(one, other), self.ahead(other, one))

    def rank(self, name: str, key: int) -> tuple[int, int]:
        """Return the sort key of a node by its distance to a key; at equal distances the lower id is nearer."""
        id = self.identify(name)
        return self.distance(id, key), id

    def shared(self, one: int, other: int) -> int:
        """Return the number of leading digits that two numbers share."""
        return (self.bits - (one ^ other).bit_length()) // self.digit_bits

    def digit(self, number: int, place: int) -> int:
        """Return a digit of a number; the first digit has place 0."""
        return number >> self.bits - (place + 1) * self.digit_bits & (1 << self.digit_bits) - 1

    def closest(self, names: Iterable[str], key: int, n: int) -> list[str]:
        """Return the n nodes nearest to a key, nearest first."""
        return nsmallest(n, names, key=lambda name: self.rank(name, key))

    def owner(self, names: Iterable[str], key: int) -> str:
        """Return the node nearest to a key."""
        return min(names, key=lambda name: self.rank(name, key))

    def leaves(self, names: Iterable[str], name: str, half: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the `half` next smaller and next larger nodes, nearest first; among few nodes some are both."""
        me, others = self.identify(name), {*names} - {name}
        smaller = nsmallest(half, others, key=lambda other: self.ahead(self.identify(other), me))
        larger = nsmallest(half, others, key=lambda other: self.ahead(me, self.identify(other)))
        return tuple(smaller), tuple(larger)
