"""Orders of delivery: by publisher (FIFO), causal, total; and the order a strategy promises."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise

from fieldfare.routing.strategies import Order, Strategy
from fieldfare.simulation.checker.violations import EventId, Violation
from fieldfare.simulation.topologies import Topology
from fieldfare.simulation.trace import Crashed, Delivered, Down, Published, Trace


def promised(strategy: Strategy, topology: Topology, trace: Trace) -> Order:
    """Return the order a network promises: the strategy's, on a tree always, elsewhere while no link goes down."""
    if strategy.overlay == "acyclic" and not topology.has_cycle:
        return strategy.order
    changed = any(isinstance(record, Down | Crashed) for record in trace)
    return "none" if changed else strategy.order


def fifo(trace: Trace) -> list[Violation]:
    """Find deliveries out of the order in which a publisher published."""
    found: list[Violation] = []
    places = {(record.client, record.sequence): record.order for record in trace if isinstance(record, Published)}
    latest: dict[tuple[str, str], int] = {}
    for record in trace:
        if isinstance(record, Delivered):
            event_id, pair = (record.publisher, record.sequence), (record.client, record.publisher)
            place = places.get(event_id, -1)
            if -1 < place < latest.get(pair, -1):
                found.append(Violation("fifo", record.order, f"to {record.client}: {event_id} comes after a later one"))
            latest[pair] = max(place, latest.get(pair, -1))
    return found


def causal(trace: Trace) -> list[Violation]:
    """Find deliveries of an event after a possible consequence of the event.

    An event may cause another event of the same publisher, later, or of a client after the delivery there; such steps
    add up. The events of a publisher are a chain, so the latest event of each publisher stands for all causes.
    """
    found: list[Violation] = []
    places, causes = _causes(trace)
    seen: defaultdict[str, dict[str, int]] = defaultdict(dict)
    """by client: all that may have caused what it got"""
    for record in trace:
        if isinstance(record, Delivered) and (event_id := (record.publisher, record.sequence)) in places:
            if places[event_id] <= seen[record.client].get(record.publisher, 0):
                problem = f"to {record.client}: {event_id} comes after one that it may have caused"
                found.append(Violation("causal", record.order, problem))
            _join(seen[record.client], causes[event_id])
    return found


def _causes(trace: Trace) -> tuple[dict[EventId, int], dict[EventId, dict[str, int]]]:
    """Return each event's place among the publisher's events, from 1, and the places of possible causes."""
    places: dict[EventId, int] = {}
    causes: dict[EventId, dict[str, int]] = {}
    known: defaultdict[str, dict[str, int]] = defaultdict(dict)
    """by client: all that may cause what it publishes next"""
    for record in trace:
        if isinstance(record, Published):
            event_id, mine = (record.client, record.sequence), known[record.client]
            causes[event_id] = dict(mine)
            places[event_id] = mine[record.client] = mine.get(record.client, 0) + 1
        elif isinstance(record, Delivered) and (event_id := (record.publisher, record.sequence)) in places:
            _join(known[record.client], causes[event_id])
            _join(known[record.client], {record.publisher: places[event_id]})
    return places, causes


def _join(known: dict[str, int], more: Mapping[str, int]) -> None:
    for publisher, place in more.items():
        if place > known.get(publisher, 0):
            known[publisher] = place


def total(trace: Trace) -> list[Violation]:
    """Find pairs of clients with common events in different orders; of a repeated delivery the first counts."""
    got: defaultdict[str, dict[EventId, int]] = defaultdict(dict)
    for record in trace:
        if isinstance(record, Delivered):
            got[record.client].setdefault((record.publisher, record.sequence), record.order)
    after: defaultdict[EventId, set[EventId]] = defaultdict(set)
    for mine in got.values():
        for one, next_one in pairwise(mine):
            after[next_one].add(one)
    try:
        TopologicalSorter(after).prepare()
    except CycleError:  # then some may disagree
        return [violation for a, b in combinations(sorted(got), 2) for violation in _disagreements(a, b, got)]
    return []  # all agree with one order


def _disagreements(a: str, b: str, got: Mapping[str, Mapping[EventId, int]]) -> Iterator[Violation]:
    common = [event_id for event_id in got[a] if event_id in got[b]]
    for one, next_one in pairwise(common):
        if got[b][one] > got[b][next_one]:
            order = max(got[a][next_one], got[b][one])
            yield Violation("total", order, f"{a} gets {one} before {next_one}, and {b} after it")
