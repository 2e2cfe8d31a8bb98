"""What is counted in a run: the messages on each link, and what each broker had to do."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TypeVar

_Counts = TypeVar("_Counts", "Traffic", "Work")


@dataclass(slots=True)
class Traffic:
    """What was sent over a link, in one direction."""

    events: int = 0
    admin: int = 0
    """messages about subscriptions and advertisements"""
    added: int = 0
    """filters in them that are new"""
    removed: int = 0
    """and those that are gone"""
    other: int = 0
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


def add_up(counts: list[_Counts], zero: _Counts) -> _Counts:
    """The sum, field by field.

    >>> add_up([Work(received=1), Work(received=2, ticks=1)], Work())
    Work(received=3, published=0, delivered=0, refused=0, ticks=1)
    """
    return type(zero)(*map(sum, zip(*map(astuple, [zero, *counts]), strict=True)))
