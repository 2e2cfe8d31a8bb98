"""The summary of a run in a few figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

from fieldfare.simulation.checker.violations import EventId, Violation
from fieldfare.simulation.counters import Traffic, Work
from fieldfare.simulation.tally import Tally
from fieldfare.simulation.trace import Delivered, Forwarded, Published, Trace

Hop: TypeAlias = tuple[str, str]
"""from a broker to a neighbour"""


class Figures(msgspec.Struct, frozen=True):
    """The figures of a run: events, deliveries, messages, table sizes, violations."""

    events: int
    """published"""
    deliveries: int
    messages: int
    """all that brokers sent to each other"""
    event_messages: int
    admin_messages: int
    """about filters"""
    other_messages: int
    lost_messages: int
    refused: int
    table_entries: int
    """of all brokers together, at the end"""
    largest_table: int
    false_positives: int
    """events sent over a link for nothing: no delivery came of it, there or beyond"""
    latency_mean: float | None
    """seconds from publication to delivery"""
    latency_p99: float | None
    violations: int | None
    """of the specification; None: not checked"""
    due: int | None = None
    """deliveries that clients had asked for when the event was published; None: not checked"""
    judged: int | None = None
    """due deliveries whose absence would have been a violation"""


def figures(
    trace: Trace,
    traffic: Traffic,
    work: Work,
    tables: Iterable[int],
    checked: tuple[list[Violation], Tally] | None,
) -> Figures:
    """Compute the figures of a run."""
    times, sizes = sorted(latencies(trace)), list(tables)
    return Figures(
        events=work.published,
        deliveries=work.delivered,
        messages=traffic.events + traffic.admin + traffic.other,
        event_messages=traffic.events,
        admin_messages=traffic.admin,
        other_messages=traffic.other,
        lost_messages=traffic.lost,
        refused=work.refused,
        table_entries=sum(sizes),
        largest_table=max(sizes, default=0),
        false_positives=false_positives(trace),
        latency_mean=sum(times) / len(times) if times else None,
        latency_p99=times[(len(times) * 99 - 1) // 100] if times else None,
        violations=None if checked is None else len(checked[0]),
        due=None if checked is None else checked[1].due,
        judged=None if checked is None else checked[1].judged,
    )


def latencies(trace: Trace) -> list[float]:
    """How long each delivery took."""
    since: dict[EventId, float] = {}
    found: list[float] = []
    for record in trace:
        if isinstance(record, Published):
            since[record.client, record.sequence] = record.time
        elif isinstance(record, Delivered) and (record.publisher, record.sequence) in since:
            found.append(record.time - since[record.publisher, record.sequence])
    return found


def false_positives(trace: Trace) -> int:
    """Count events sent over a link without a delivery there or beyond; second copies to a broker always count."""
    hops: defaultdict[EventId, dict[str, str]] = defaultdict(dict)
    """by event: where it came from, for each broker that it was sent to"""
    reached: defaultdict[EventId, set[str]] = defaultdict(set)
    sent = 0
    for record in trace:
        if isinstance(record, Forwarded):
            sent += 1
            hops[record.publisher, record.sequence].setdefault(record.neighbour, record.broker)
        elif isinstance(record, Delivered):
            reached[record.publisher, record.sequence].add(record.broker)
    useful = 0
    for event_id, came in hops.items():
        on_the_way: set[str] = set()
        for broker in reached[event_id]:
            while broker in came and broker not in on_the_way:
                on_the_way.add(broker)
                broker = came[broker]  # noqa: PLW2901 - back to where it was published
        useful += len(on_the_way)
    return sent - useful
