"""The checker: whether a trace is one that the specification allows.

Each check is a function of a trace that gives the violations it finds; none is good. `check` runs them all.

A run is finite, so liveness is checked in a finite form. When the network is quiet, whatever was asked for has taken
effect. An event published after that must be delivered by the next quiet moment, if until then the subscription is
kept, no link and no broker goes down or comes up, and there is a path of links between the two brokers. A client that
is away then must get it by the first quiet moment at which it is back, wherever that is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations, pairwise
from typing import Final, NamedTuple, TypeAlias

from fieldfare.events.event import Event, fields_of
from fieldfare.filters.filter import Filter
from fieldfare.matching.classic.brute import BruteForce
from fieldfare.matching.index import Index
from fieldfare.matching.matcher import Matcher
from fieldfare.routing.strategies import Order, Strategy
from fieldfare.simulation.tally import Tally
from fieldfare.simulation.topologies import Topology
from fieldfare.simulation.trace import (
    Advertised,
    Arrived,
    Crashed,
    Delivered,
    Departed,
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

_FEW: Final = 100
"""so many filters are faster tried one by one than put into an index"""

EventId: TypeAlias = tuple[str, int]
"""the publisher, and its count"""


class Violation(NamedTuple):
    """Something that must not be."""

    rule: str
    order: int
    """the record that shows it"""
    problem: str


class Asked(NamedTuple):
    """A subscription or advertisement in force."""

    broker: str
    since: int
    filter: Filter


class _Book:
    """What clients ask for or promise, as a trace goes on."""

    def __init__(self, begins: type[Subscribed | Advertised], ends: type[Unsubscribed | Unadvertised]) -> None:
        self._begins = begins
        self._ends = ends
        self.of: defaultdict[str, dict[str, Asked]] = defaultdict(dict)
        """by client and id"""

    def ended(self, record: Record) -> list[tuple[str, str]]:
        """What the record ends: clients and ids."""
        match record:
            case Subscribed() | Unsubscribed() | Advertised() | Unadvertised():
                mine = isinstance(record, (self._begins, self._ends)) and record.id in self.of[record.client]
                return [(record.client, record.id)] if mine else []
            case Left():
                return [(record.client, id) for id in self.of[record.client]]
            case Restarted(kept=False):
                return [(c, id) for c, mine in self.of.items() for id, a in mine.items() if a.broker == record.broker]
        return []

    def follow(self, record: Record) -> list[tuple[str, str]]:
        """Go on by a record; gives what it ends."""
        ended = self.ended(record)
        for client, id in ended:
            del self.of[client][id]
        if isinstance(record, Subscribed | Advertised) and isinstance(record, self._begins):
            self.of[record.client][record.id] = Asked(record.broker, record.order, record.filter)
        return ended


def _subscriptions() -> _Book:
    return _Book(Subscribed, Unsubscribed)


def _advertisements() -> _Book:
    return _Book(Advertised, Unadvertised)


def _any_match(asked: Mapping[str, Asked], event: Event) -> bool:
    fields = fields_of(event)
    return any(one.filter.matches_fields(fields) for one in asked.values())


def promised(strategy: Strategy, topology: Topology, trace: Trace) -> Order:
    """The order that a network promises: while links stay as they are that of its strategy, and on a tree always."""
    if strategy.overlay == "acyclic" and not topology.has_cycle:
        return strategy.order
    changed = any(isinstance(record, Down | Crashed) for record in trace)
    return "none" if changed else strategy.order


def safety(trace: Trace, *, advertisements: bool = False) -> list[Violation]:
    """A delivery was asked for at that moment, was published before as it is, and comes once.

    With advertisements, an event that its publisher did not promise is delivered to nobody.
    """
    found: list[Violation] = []
    subscriptions, promised = _subscriptions(), _advertisements()
    published: dict[EventId, Event] = {}
    unpromised: set[EventId] = set()
    delivered: set[tuple[str, EventId]] = set()
    for record in trace:
        subscriptions.follow(record)
        promised.follow(record)
        if isinstance(record, Published):
            event_id = record.client, record.sequence
            if event_id in published:
                found.append(Violation("safety", record.order, f"{event_id} is published twice"))
            published[event_id] = record.event
            if advertisements and not _any_match(promised.of[record.client], record.event):
                unpromised.add(event_id)
        elif isinstance(record, Delivered):
            event_id = record.publisher, record.sequence
            problem = None
            original = published.get(event_id)
            if original is None:
                problem = "was not published before"
            elif original is not record.event and original != record.event:
                problem = "is not as it was published"
            elif not _is_asked_for(record, subscriptions.of[record.client]):
                problem = "was not asked for"
            elif (record.client, event_id) in delivered:
                problem = "had been delivered before"
            elif event_id in unpromised:
                problem = "was not advertised"
            if problem is not None:
                found.append(Violation("safety", record.order, f"to {record.client}: {event_id} {problem}"))
            delivered.add((record.client, event_id))
    return found


def _is_asked_for(record: Delivered, asked: Mapping[str, Asked]) -> bool:
    """One subscription is enough, and the first that the delivery names is the likely one."""
    likely = asked.get(record.subscriptions[0]) if record.subscriptions else None
    if likely is not None and likely.filter.matches(record.event):
        return True
    return _any_match(asked, record.event)


def attribution(trace: Trace) -> list[Violation]:
    """A delivery names exactly the client's subscriptions that it matches."""
    found: list[Violation] = []
    subscriptions = _subscriptions()
    for record in trace:
        subscriptions.follow(record)
        if isinstance(record, Delivered):
            fields = fields_of(record.event)
            asked = subscriptions.of[record.client]
            right = sorted(id for id, one in asked.items() if one.filter.matches_fields(fields))
            if sorted(record.subscriptions) != right:
                problem = f"to {record.client}: for {sorted(record.subscriptions)} instead of {right}"
                found.append(Violation("attribution", record.order, problem))
    return found


def liveness(trace: Trace, *, advertisements: bool = False, tally: Tally | None = None) -> list[Violation]:
    """What was asked for, and with advertisements also promised, is delivered once the network has settled.

    A tally is told what was due and what of it was judged, here or by `local_liveness`.
    """
    tally = Tally() if tally is None else tally
    mobile = {record.client for record in trace if isinstance(record, Departed | Arrived)}
    found: list[Violation] = []
    owed: defaultdict[str, dict[EventId, set[str]]] = defaultdict(dict)
    """to clients: events, by the subscriptions for which they are due"""
    promised = _advertisements()
    subscriptions = _Matching(trace)
    network = _Components()
    away: set[str] = set()
    disturbed = quiet = -1
    for record in trace:
        for client, id in subscriptions.follow(record):
            _forgive(owed[client], id)
        for client, _ in promised.follow(record):
            if advertisements:
                for mine in owed.values():
                    for event_id in [event_id for event_id in mine if event_id[0] == client]:
                        del mine[event_id]
        match record:
            case Up() | Down() | Crashed() | Restarted():
                network.follow(record)
                disturbed = record.order
                owed.clear()
            case Quiet():
                quiet = record.order
                for client in [client for client in owed if client not in away]:
                    mine = owed.pop(client)
                    problems = (
                        f"to {client}: {event_id} is missing, due for {sorted(mine[event_id])}" for event_id in mine
                    )
                    found += [Violation("liveness", record.order, problem) for problem in problems]
                    for event_id in mine:
                        tally.judges((client, event_id))
            case Departed():
                away.add(record.client)
            case Arrived():
                away.discard(record.client)
            case Delivered():
                event_id = record.publisher, record.sequence
                if owed[record.client].pop(event_id, None) is not None:
                    tally.judges((record.client, event_id))
            case Published():
                event_id = record.client, record.sequence
                if advertisements and not _any_match(promised.of[record.client], record.event):
                    continue
                wanted = list(subscriptions.match(record.event))
                tally.asks(len({client for client, _, _ in wanted}))
                for client in {client for client, _, asked in wanted if asked.broker == record.broker} - mobile:
                    tally.judges_at_once((client, event_id))
                settled = {id: one for id, one in promised.of[record.client].items() if one.since < quiet}
                if quiet <= disturbed or (advertisements and not _any_match(settled, record.event)):
                    continue
                for client, id, asked in wanted:
                    if asked.since < quiet and network.joined(asked.broker, record.broker):
                        owed[client].setdefault(event_id, set()).add(id)
    return found


def _forgive(owed: dict[EventId, set[str]], id: str) -> None:
    """What was due only for this subscription is due no more."""
    for event_id, ids in list(owed.items()):
        ids.discard(id)
        if not ids:
            del owed[event_id]


def local_liveness(trace: Trace, *, advertisements: bool = False) -> list[Violation]:
    """Clients of the publisher's own broker get an event in the very step in which it is published.

    That is not for clients that move: at its new broker one has to wait for what is on its way from the old one.
    """
    found: list[Violation] = []
    mobile = {record.client for record in trace if isinstance(record, Departed | Arrived)}
    promised = _advertisements()
    subscriptions = _Matching(trace)
    for place, record in enumerate(trace):
        subscriptions.follow(record)
        promised.follow(record)
        if isinstance(record, Published):
            if advertisements and not _any_match(promised.of[record.client], record.event):
                continue
            given = {other.client for other in _step(trace, place) if isinstance(other, Delivered)}
            wanted = subscriptions.match(record.event)
            missed = {client for client, _, asked in wanted if asked.broker == record.broker} - given - mobile
            for client in sorted(missed):
                problem = f"to {client}: {(record.client, record.sequence)} is missing, from the same broker"
                found.append(Violation("local liveness", record.order, problem))
    return found


def _step(trace: Trace, place: int) -> Iterator[Record]:
    """What a publication's broker did with the event before it did anything else."""
    first = trace[place]
    assert isinstance(first, Published)
    for number in range(place + 1, len(trace)):
        record = trace[number]
        if not isinstance(record, Delivered | Forwarded | Told) or record.broker != first.broker:
            return
        if not isinstance(record, Told) and (record.publisher, record.sequence) != (first.client, first.sequence):
            return
        yield record


def fifo(trace: Trace) -> list[Violation]:
    """A client gets the events of each publisher in the order in which they were published."""
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
    """A client gets no event after one that it may have caused.

    An event may have caused another if its publisher published the other later, if the other's publisher had got it, or
    by several such steps. The events of a publisher are a chain, so all that may have caused an event is known by
    the latest of each publisher.
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
    """The place of each event among its publisher's, from 1, and the places of what may have caused it."""
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
    """Any two clients get the events that both get in the same order; of one that comes again, the first counts."""
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


def check(
    trace: Trace, *, advertisements: bool = False, order: Order = "causal", tally: Tally | None = None
) -> list[Violation]:
    """All that a network of brokers must hold to, in the order that it promises; a tally says how much was judged."""
    checks: list[Callable[[], list[Violation]]] = [
        lambda: safety(trace, advertisements=advertisements),
        lambda: attribution(trace),
        lambda: liveness(trace, advertisements=advertisements, tally=tally),
        lambda: local_liveness(trace, advertisements=advertisements),
        *([lambda: fifo(trace)] if order in ("fifo", "causal") else []),
        *([lambda: causal(trace)] if order == "causal" else []),
    ]
    return sorted((violation for run in checks for violation in run()), key=lambda violation: violation.order)


class _Matching:
    """The subscriptions of all clients, matched at once."""

    def __init__(self, trace: Trace) -> None:
        self._book = _subscriptions()
        many = sum(isinstance(record, Subscribed) for record in trace) > _FEW
        self._matcher: Matcher[tuple[str, str]] = Index() if many else BruteForce()

    def follow(self, record: Record) -> list[tuple[str, str]]:
        """Go on by a record; gives the subscriptions that it ends."""
        ended = self._book.follow(record)
        for key in ended:
            self._matcher.remove(key)
        if isinstance(record, Subscribed):
            self._matcher.add((record.client, record.id), record.filter)
        return ended

    def match(self, event: Event) -> Iterator[tuple[str, str, Asked]]:
        """Clients, ids and subscriptions that want the event."""
        for client, id in self._matcher.match(event):
            yield client, id, self._book.of[client][id]


class _Components:
    """Which brokers can reach which over links that are up."""

    def __init__(self) -> None:
        self._links: set[tuple[str, str]] = set()
        self._of: dict[str, str] | None = None

    def follow(self, record: Up | Down | Crashed | Restarted) -> None:
        """Go on by a record."""
        if isinstance(record, Up):
            self._links.add((record.broker, record.neighbour))
        elif isinstance(record, Down):
            self._links.discard((record.broker, record.neighbour))
        self._of = None

    def joined(self, a: str, b: str) -> bool:
        """Whether there is a path."""
        if a == b:
            return True
        if self._of is None:
            self._of = self._components()
        return a in self._of and self._of[a] == self._of.get(b)

    def _components(self) -> dict[str, str]:
        """A broker of its component for each, found by joining the components that a link joins."""
        above: dict[str, str] = {}

        def top(broker: str) -> str:
            while above.setdefault(broker, broker) != broker:
                above[broker] = above[above[broker]]
                broker = above[broker]
            return broker

        for a, b in self._links:
            above[top(a)] = top(b)
        return {broker: top(broker) for broker in list(above)}
