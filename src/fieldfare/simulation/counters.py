"""Counters of a run: the messages on each link, and the work of each broker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import TypeVar


@dataclass(slots=True)
class Traffic:
    """Counters of the messages over a link, in a single direction."""

    events: int = 0
    admin: int = 0
    """filter updates and interest updates"""
    added: int = 0
    """filters added by updates"""
    removed: int = 0
    """filters removed by updates"""
    other: int = 0
    """messages of neither kind, such as those about links"""
    lost: int = 0
    """messages of all kinds that never arrived"""
    bytes: int = 0
    """of messages of all kinds, if the network counts bytes"""


@dataclass(slots=True)
class Work:
    """Counters of a broker's work: messages in, deliveries and refusals out, ticks."""

    received: int = 0
    """messages, of neighbours and clients"""
    published: int = 0
    delivered: int = 0
    refused: int = 0
    ticks: int = 0


Counts = TypeVar("Counts", Traffic, Work)


def add_up(counts: Iterable[Counts], zero: Counts) -> Counts:
    """Add counters up, field by field.

    >>> add_up([Work(received=1), Work(received=2, ticks=1)], Work())
    Work(received=3, published=0, delivered=0, refused=0, ticks=1)
    """
    rows = [astuple(zero), *(astuple(one) for one in counts)]
    return type(zero)(*map(sum, zip(*rows, strict=True)))
