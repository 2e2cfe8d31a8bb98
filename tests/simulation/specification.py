"""The specification word by word, as slow as it is obvious: the twin of the checker.

Each function gives what the checker must find, as pairs of the record that shows it and what it is about.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

from fieldfare.filters import Filter
from fieldfare.simulation.trace import (
    Advertised,
    Crashed,
    Delivered,
    Down,
    Forwarded,
    Left,
    Published,
    Quiet,
    Record,
    Restarted,
    Subscribed,
    Told,
    Trace,
    Unadvertised,
    Unsubscribed,
    Up,
)

EventId = tuple[str, int]


def name(record: Published | Delivered) -> EventId:
    return (record.client if isinstance(record, Published) else record.publisher), record.sequence


def asked(
    trace: Trace, client: str, begins: type = Subscribed, ends: type = Unsubscribed
) -> list[tuple[str, int, Filter, str]]:
    """What a client asks for at the end of a trace: id, since when, filter, broker."""
    now: dict[str, tuple[str, int, Filter, str]] = {}
    for record in trace:
        if isinstance(record, Restarted) and not record.kept:
            now = {id: one for id, one in now.items() if one[3] != record.broker}
        elif isinstance(record, Left) and record.client == client:
            now = {}
        elif isinstance(record, Subscribed | Advertised) and isinstance(record, begins) and record.client == client:
            now[record.id] = (record.id, record.order, record.filter, record.broker)
        elif isinstance(record, Unsubscribed | Unadvertised) and isinstance(record, ends) and record.client == client:
            now.pop(record.id, None)
    return list(now.values())


def promised(trace: Trace, client: str) -> list[tuple[str, int, Filter, str]]:
    return asked(trace, client, Advertised, Unadvertised)


def published(trace: Trace) -> list[Published]:
    return [record for record in trace if isinstance(record, Published)]


def delivered(trace: Trace, client: str | None = None) -> list[Delivered]:
    return [r for r in trace if isinstance(r, Delivered) and client in (None, r.client)]


def clients(trace: Trace) -> list[str]:
    return sorted({record.client for record in trace if isinstance(record, Delivered | Subscribed)})


def safety(trace: Trace, advertisements: bool) -> set[int]:
    wrong = set()
    for place, record in enumerate(trace):
        before = trace[:place]
        if isinstance(record, Published) and name(record) in map(name, published(before)):
            wrong.add(place)
        if isinstance(record, Delivered):
            origins = [p for p in published(before) if name(p) == name(record)]
            fine = (
                any(filter.matches(record.event) for _, _, filter, _ in asked(before, record.client))
                and bool(origins)
                and origins[-1].event == record.event
                and name(record) not in map(name, delivered(before, record.client))
            )
            if fine and advertisements:
                promises = promised(trace[: origins[-1].order], record.publisher)
                fine = any(filter.matches(record.event) for _, _, filter, _ in promises)
            if not fine:
                wrong.add(place)
    return wrong


def liveness(trace: Trace, advertisements: bool) -> set[tuple[int, str, EventId]]:
    wrong = set()
    for p in published(trace):
        quiets = [record.order for record in trace if isinstance(record, Quiet)]
        before, after = [q for q in quiets if q < p.order], [q for q in quiets if q > p.order]
        if not before or not after:
            continue
        start, end = before[-1], after[0]
        if any(isinstance(record, Up | Down | Crashed | Restarted) for record in trace[start:end]):
            continue
        kept_promises = {
            (id, since) for id, since, filter, _ in promised(trace[:start], p.client) if filter.matches(p.event)
        }
        if advertisements and not any_ends(trace, p, kept_promises, end):
            continue
        for client in clients(trace):
            for id, since, filter, broker in asked(trace[:start], client):
                kept = all((id, since) in [one[:2] for one in asked(trace[:n], client)] for n in range(start, end + 1))
                due = kept and filter.matches(p.event) and joined(trace[:start], p.broker, broker)
                got = any(name(d) == name(p) for d in delivered(trace[p.order : end], client))
                if due and not got:
                    wrong.add((end, client, name(p)))
    return wrong


def any_ends(trace: Trace, p: Published, promises: set[tuple[str, int]], end: int) -> bool:
    """Whether a promise was there, and none of the publisher's was taken back or replaced while the event was under way."""
    now = [one[:2] for one in promised(trace[: p.order], p.client)]
    later = [[one[:2] for one in promised(trace[:n], p.client)] for n in range(p.order, end + 1)]
    return any(one in now for one in promises) and all(one in then for then in later for one in now)


def joined(trace: Trace, a: str, b: str) -> bool:
    links: set[frozenset[str]] = set()
    for record in trace:
        if isinstance(record, Up):
            links.add(frozenset((record.broker, record.neighbour)))
        elif isinstance(record, Down):
            links.discard(frozenset((record.broker, record.neighbour)))
    reached = {a}
    for _ in range(len(links)):
        for link in links:
            if link & reached:
                reached |= link
    return b in reached


def local_liveness(trace: Trace, advertisements: bool) -> set[tuple[int, str]]:
    wrong = set()
    for p in published(trace):
        if advertisements and not any(one[2].matches(p.event) for one in promised(trace[: p.order], p.client)):
            continue
        for client in clients(trace):
            wanted = [one for one in asked(trace[: p.order], client) if one[3] == p.broker and one[2].matches(p.event)]
            given = [d for d in delivered(trace[p.order :], client) if name(d) == name(p)]
            if wanted and not any(is_one_step(p, trace[p.order + 1 : d.order + 1]) for d in given):
                wrong.add((p.order, client))
    return wrong


def is_one_step(p: Published, then: Trace) -> bool:
    return all(
        isinstance(record, Told | Forwarded | Delivered)
        and record.broker == p.broker
        and (isinstance(record, Told) or (record.publisher, record.sequence) == name(p))
        for record in then
    )


def attribution(trace: Trace) -> set[int]:
    return {
        d.order
        for d in delivered(trace)
        if sorted(d.subscriptions)
        != sorted(one[0] for one in asked(trace[: d.order], d.client) if one[2].matches(d.event))
    }


def fifo(trace: Trace) -> set[int]:
    order = {name(p): p.order for p in published(trace)}
    return {
        second.order
        for client in clients(trace)
        for first, second in combinations(delivered(trace, client), 2)
        if first.publisher == second.publisher and order[name(first)] > order[name(second)]
    }


def causal(trace: Trace) -> set[int]:
    after: dict[EventId, set[EventId]] = {name(p): set() for p in published(trace)}
    for p in published(trace):
        for n in published(trace):
            told = [d for d in delivered(trace[: n.order], n.client) if name(d) == name(p) and d.order > p.order]
            if n.order > p.order and (n.client == p.client or told):
                after[name(p)].add(name(n))
    for middle, one, other in permutations(after, 3):  # Warshall's closure: the middle varies slowest
        if middle in after[one] and other in after[middle]:
            after[one].add(other)
    return {
        second.order
        for client in clients(trace)
        for first, second in combinations(delivered(trace, client), 2)
        if name(first) in after[name(second)]
    }


def total(trace: Trace) -> bool:
    """Whether two clients disagree."""
    orders = [list(dict.fromkeys(map(name, delivered(trace, client)))) for client in clients(trace)]
    return any(
        (mine.index(one) < mine.index(other)) != (yours.index(one) < yours.index(other))
        for mine, yours in combinations(orders, 2)
        for one, other in combinations([event for event in mine if event in yours], 2)
    )


def numbered(trace: Sequence[Record]) -> list[Record]:
    """With the order that the records have now."""
    return [record._replace(order=order) for order, record in enumerate(trace)]
