"""Contenders: engines, databases and libraries that can tell which filters an event matches.

A contender is three nested closures: `prepare(workload)` loads the filters and returns `feed`; `feed(events)` brings
events into the form in which events would arrive and returns `run`; `run()` matches the events and returns the number
of matches. Only `run` is timed, so all work that a contender must do for each event belongs into `run`.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from fieldfare_lab.bench.rules import TESTS, Event, operators
from fieldfare_lab.bench.workloads import Workload

Run: TypeAlias = Callable[[], int]
Feed: TypeAlias = Callable[[Sequence[Event]], Run]


def _unlimited(workload: Workload) -> float:
    return math.inf


@dataclass(frozen=True)
class Contender:
    """A way to match events, with the limits of filters, operators and size within which the way can be measured."""

    name: str
    about: str
    prepare: Callable[[Workload], Feed]
    module: str | None = None
    """module that must be importable"""
    package: str | None = None
    """name of the module's package for pip; None: the module's name"""
    rules_only: bool = False
    """whether the contender needs filters that are plain rules"""
    operators: frozenset[str] = frozenset(TESTS)
    """operators that the contender's language can express"""
    times: bool = True
    """whether the contender knows timestamps"""
    pairs: Callable[[Workload], float] = _unlimited
    """largest number of pairs of a filter and an event in a round; slow contenders get fewer events"""
    most_filters: float = math.inf
    """limit of filters; more would take too long to prepare"""
    patient: bool = False
    """whether the start takes so long that a quick run leaves the contender out"""
    clock: Callable[[], float] = time.process_time
    """returns CPU seconds of all processes that work for the contender"""


def missing(contender: Contender) -> str | None:
    """Return the reason why the contender cannot run on the machine, or None."""
    if contender.module is None or importlib.util.find_spec(contender.module) is not None:
        return None
    return f"not installed: pip install {contender.package or contender.module}"


def unfit(contender: Contender, workload: Workload) -> str | None:
    """Return the reason why the contender cannot run on a workload, or None."""
    if (reason := missing(contender)) is not None:
        return reason
    if len(workload.filters) > contender.most_filters:
        return f"takes too long to prepare more than {contender.most_filters:,} filters"
    if not contender.rules_only:
        return None
    if workload.rules is None:
        return "only plain conjunctions"
    if lacking := operators(workload.rules) - contender.operators:
        return f"no form for {', '.join(sorted(lacking))}"
    if not contender.times and any(
        isinstance(x, datetime) for rule in workload.rules for p in rule for x in p.operands
    ):
        return "no timestamps"
    return None


def events_for(contender: Contender, workload: Workload, effort: float = 1.0) -> int:
    """Return how many of the workload's events the contender can match in a round of bearable length."""
    bearable = effort * contender.pairs(workload) / max(1, len(workload.filters))
    return int(max(1, min(len(workload.events), bearable)))


def contenders() -> dict[str, Contender]:
    """Return all contenders by name, Fieldfare's first; the module of a peer is imported in `prepare`."""
    from fieldfare_lab.bench import (  # noqa: PLC0415 - the three modules import `Contender` from here
        fieldfare_contenders,
        libraries,
        tables,
    )

    every: Iterable[Contender] = (*fieldfare_contenders.CONTENDERS, *tables.CONTENDERS, *libraries.CONTENDERS)
    return {contender.name: contender for contender in every}
