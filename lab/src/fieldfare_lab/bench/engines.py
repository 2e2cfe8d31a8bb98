"""Contenders: whoever can be asked which filters an event matches.

A contender is three closures, one made by the other: `prepare(workload)` takes the filters in and gives `feed`;
`feed(events)` brings events into the form in which they would arrive and gives `run`; `run()` matches them and gives
the number of matches. Only `run` is timed; what a contender must do for each event belongs into it.
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
    """How to run one of them, and how far it can go."""

    name: str
    about: str
    prepare: Callable[[Workload], Feed]
    module: str | None = None
    """what must be importable"""
    package: str | None = None
    """what pip calls it"""
    rules_only: bool = False
    """needs filters that are plain rules"""
    operators: frozenset[str] = frozenset(TESTS)
    """those it has a form for"""
    times: bool = True
    """knows timestamps"""
    pairs: Callable[[Workload], float] = _unlimited
    """how many pairs of a filter and an event a round can take; the time is scaled from as many events"""
    most_filters: float = math.inf
    """more would take too long to prepare"""
    patient: bool = False
    """takes so long to start that a quick run does without"""
    clock: Callable[[], float] = time.process_time
    """CPU seconds of all that works for it"""


def missing(contender: Contender) -> str | None:
    """Why the contender cannot run on this machine, if it cannot."""
    if contender.module is None or importlib.util.find_spec(contender.module) is not None:
        return None
    return f"not installed: pip install {contender.package or contender.module}"


def unfit(contender: Contender, workload: Workload) -> str | None:
    """Why the contender does not run on a workload, if it does not."""
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
    """How many of the workload's events the contender can take in a round."""
    bearable = effort * contender.pairs(workload) / max(1, len(workload.filters))
    return int(max(1, min(len(workload.events), bearable)))


def contenders() -> dict[str, Contender]:
    """All of them by name, ours first; the modules of peers are imported when they are prepared."""
    from fieldfare_lab.bench import (  # noqa: PLC0415 - they import this module
        fieldfare_contenders,
        libraries,
        tables,
    )

    every: Iterable[Contender] = (*fieldfare_contenders.CONTENDERS, *tables.CONTENDERS, *libraries.CONTENDERS)
    return {contender.name: contender for contender in every}
