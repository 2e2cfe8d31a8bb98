"""Strategies, seeds and checks of lines that the experiments on routing share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from fieldfare.routing.strategies import (
    BOOK_MERGING,
    COVERING,
    IDENTITY,
    IMPERFECT,
    MERGING,
    SIMPLE,
)
from fieldfare_lab.results import Curves, Settings, curves_of

ALL: Final = (SIMPLE, IDENTITY, COVERING, BOOK_MERGING, MERGING, IMPERFECT)
BROKERS: Final = 31
"""number of brokers in a binary tree with five levels"""
EVENTS: Final = 300


def seeds(settings: Settings) -> list[int]:
    """Return the seed of each replication."""
    return [settings.seed + i for i in range(settings.replications)]


def by_subscriptions(rows: Sequence[dict[str, Any]], value: str, title: str) -> Curves:
    """Draw a value over the number of subscriptions, a line for each strategy."""
    return curves_of(rows, title=title, x="subscriptions", line="strategy", value=value)


def listed(values: Iterable[float | None]) -> str:
    """Write a line's values as text."""
    return ", ".join("-" if value is None else f"{value:,.3g}" for value in values)


def factor(values: Sequence[float | None]) -> float:
    """Return the factor by which a line grows from its first to its last value."""
    return (values[-1] or 0) / (values[0] or 1)


def falls(values: Sequence[float | None]) -> bool:
    """Tell whether a line never rises, and falls at least once."""
    return all((a or 0) >= (b or 0) for a, b in pairwise(values)) and values[0] != values[-1]


def rises(values: Sequence[float | None]) -> bool:
    """Tell whether a line never falls, and rises at least once."""
    return falls([-(value or 0) for value in values])


def below(values: Sequence[float | None], others: Sequence[float | None]) -> bool:
    """Tell whether a line is nowhere above another."""
    return all((a or 0) <= (b or 0) for a, b in zip(values, others, strict=True))
