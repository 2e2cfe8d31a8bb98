"""What is counted in a run: the messages on each link, and what each broker had to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import TypeVar


@dataclass(slots=True)
class Traffic:
    """What was sent over a link, in one direction."""

    events: int = 0
    admin: int = 0
    """messages that say what is wanted or promised"""
    added: int = 0
    """filters in them that are new"""
    removed: int = 0
    """and those that are gone"""
    other: int = 0
    """messages of neither kind, such as those about links"""
    lost: int = 0
    """of all these, how many never arrived"""
    bytes: int = 0
    """of all these, if asked for"""


@dataclass(slots=True)
class Work:
    """What a broker took in and gave to clients."""

    received: int = 0
    """messages, of neighbours and clients"""
    published: int = 0
    delivered: int = 0
    refused: int = 0
    ticks: int = 0


Counts = TypeVar("Counts", Traffic, Work)


def add_up(counts: Iterable[Counts], zero: Counts) -> Counts:
    """The sum, field by field.

    >>> add_up([Work(received=1), Work(received=2, ticks=1)], Work())
    Work(received=3, published=0, delivered=0, refused=0, ticks=1)
    """
    rows = [astuple(zero), *(astuple(one) for one in counts)]
    return type(zero)(*map(sum, zip(*rows, strict=True)))
