"""Brokers in a tree with FIFO links, to see whether events arrive: what the tests of forwarding share.

All choices come from a tape, which is a seed. Messages wait on their links until the tape says which one is next. After every step a
broker's filters at a neighbour, once all that is under way has arrived, must be what the broker exports. And when nothing is under
way any more, events reach exactly those who asked.
"""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, Generic, NamedTuple, TypeVar

import pytest
from hypothesis import strategies as st

from fieldfare.filters import Filter, parse
from fieldfare.tables.advertised import NeighbourUpdates
from fieldfare.tables.base import Table
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.indexed import IndexedTable
from fieldfare.tables.structures.forest_tables import NonRedundantForest, PosetForest
from fieldfare.tables.structures.naive import NaiveTable
from fieldfare.tables.structures.poset import Poset
from fieldfare.tables.updates import TableUpdate, apply

# Filters and events

HIGH = 4
FILTERS: list[Filter] = [
    parse(f"x BETWEEN {low} AND {high}{also}")
    for low, high in itertools.combinations_with_replacement(range(HIGH + 1), 2)
    for also in ("", " AND y = 0", " AND y = 1")
]
EVENTS: list[Mapping[str, object]] = [{"x": x, "y": y} for x in range(HIGH + 1) for y in (0, 1)]

filters = st.sampled_from(FILTERS)


class Pool:
    """A few filters by number: the fewer, the more often they meet."""

    def __init__(self, filters: Sequence[Filter]) -> None:
        self.filters = filters

    def __getitem__(self, number: int) -> Filter:
        return self.filters[number % len(self.filters)]

    def update(self, added: Sequence[int], removed: Sequence[int]) -> TableUpdate:
        both = [tuple(dict.fromkeys(self[number] for number in some)) for some in (added, removed)]
        return TableUpdate(*both)


pools = st.lists(filters, min_size=2, max_size=10, unique=True).map(Pool)
numbers = st.integers(0, 9)
some_numbers = st.lists(numbers, max_size=2)


@contextmanager
def remembered() -> Iterator[None]:
    """Remember which filter covers which, and what matches: the tests ask the same few over and over."""
    matches = Filter.matches
    known: dict[Any, bool] = {}

    def recall(filter: Filter, event: Mapping[str, object]) -> bool:
        if event.keys() != {"x", "y"}:
            return matches(filter, event)
        key = (filter, event["x"], event["y"])
        if key not in known:
            known[key] = matches(filter, event)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Filter, "covers", cache(Filter.covers))
        patch.setattr(Filter, "matches", recall)
        yield


# Tables

Make = Callable[..., Table[Any]]

KINDS: dict[str, Make] = {
    "naive": NaiveTable,
    "poset": Poset,
    "nrf": NonRedundantForest,
    "nrf approximative": partial(NonRedundantForest, exact=False),
    "nrf late": partial(NonRedundantForest, eliminate="remove", lazy=True),
    "indexed": IndexedTable,
}
"""the tables that are not redundant, which can serve neighbours"""
REDUNDANT: dict[str, Make] = {"naive redundant": partial(NaiveTable, redundant=True), "forest": PosetForest}
"""the redundant ones, for clients"""


def oracle(table: Table[Any]) -> NaiveTable[Any]:
    """The definitions, over what a table holds."""
    naive: NaiveTable[Any] = NaiveTable(table.neighbours, towards=table.towards, redundant=True)
    for filter in table.filters():
        for interface in table.interfaces(filter):
            naive.add(filter, interface)
    return naive


def received(known: Sequence[Filter], update: TableUpdate) -> list[Filter]:
    """What a neighbour knows after an update: it forgets what newer filters cover."""
    return minimal_cover([*(f for f in known if f not in update.removed), *update.added])


# Networks


class Tape:
    """Choices, one after the other."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)

    def of(self, options: Sequence[Any]) -> Any:
        return options[self.below(len(options))]

    def some(self, options: Sequence[Any], least: int = 3, most: int = 12) -> list[Any]:
        """A few of them: the fewer, the more often they meet."""
        return [self.of(options) for _ in range(least + self.below(most - least + 1))]


tapes = st.builds(Tape, st.integers(0, 2**32))
lengths = st.integers(1, 50)
"""of histories: these shrink"""


def random_tree(tape: Tape, least: int = 3, most: int = 6) -> dict[int, list[int]]:
    """Brokers with their neighbours."""
    neighbours: dict[int, list[int]] = {0: []}
    for broker in range(1, least + tape.below(most - least + 1)):
        parent = tape.below(broker)
        neighbours[parent].append(broker)
        neighbours[broker] = [parent]
    return neighbours


class Broker(ABC):
    """What a network needs of a broker. Neighbours are numbers, clients are words."""

    subscriptions: Table[Any]

    @abstractmethod
    def subscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, Any]: ...

    @abstractmethod
    def unsubscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, Any]: ...

    @abstractmethod
    def receive(self, message: Any, neighbour: int) -> Mapping[Any, Any]: ...

    @abstractmethod
    def match(self, event: Mapping[str, object]) -> set[Any]: ...


class Plain(Broker):
    """A broker that is one table; a client's subscriptions are interfaces of their own, lest one hide another."""

    def __init__(self, table: Table[Any]) -> None:
        self.subscriptions = table

    def subscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, TableUpdate]:
        return apply(self.subscriptions, TableUpdate(added=(filter,)), (client, filter))

    def unsubscribe(self, client: Hashable, filter: Filter) -> Mapping[Any, TableUpdate]:
        return apply(self.subscriptions, TableUpdate(removed=(filter,)), (client, filter))

    def receive(self, message: TableUpdate, neighbour: int) -> Mapping[Any, TableUpdate]:
        return apply(self.subscriptions, message, neighbour)

    def match(self, event: Mapping[str, object]) -> set[Any]:
        return {one[0] if isinstance(one, tuple) else one for one in self.subscriptions.match(event)}


def held(table: Table[Any], interface: Any) -> list[Filter]:
    return minimal_cover(f for f in table.filters() if interface in table.interfaces(f))


B = TypeVar("B", bound=Broker)


class Network(Generic[B]):
    """Brokers, links, clients, and what they have been delivered. A client is a word with the number of its broker."""

    def __init__(self, tree: Mapping[int, Sequence[int]], make: Callable[[int, Sequence[int]], B]) -> None:
        self.tree = tree
        self.brokers = {broker: make(broker, tree[broker]) for broker in tree}
        self.links: dict[tuple[int, int], deque[Any]] = {(i, j): deque() for i in tree for j in tree[i]}
        self.wanted: set[tuple[str, int, Filter]] = set()
        self.settled: dict[tuple[str, int, Filter], int] = {}
        """subscriptions known everywhere, with the number of events published before they were"""
        self.published: list[Mapping[str, object]] = []
        self.delivered: list[tuple[str, int, int]] = []
        """client, its broker, number of the event"""
        self.forwarded = 0

    def send(self, broker: int, messages: Mapping[Any, Any]) -> None:
        for neighbour, message in messages.items():
            assert message != TableUpdate(), "nothing to say"
            self.links[broker, neighbour].append(message)

    def toggle(self, client: str, broker: int, filter: Filter) -> None:
        """Subscribe, or unsubscribe what is subscribed."""
        one = (client, broker, filter)
        self.settled.pop(one, None)
        if one in self.wanted:
            self.wanted.remove(one)
            self.send(broker, self.brokers[broker].unsubscribe(client, filter))
        else:
            self.wanted.add(one)
            self.send(broker, self.brokers[broker].subscribe(client, filter))

    def publish(self, broker: int, event: Mapping[str, object]) -> None:
        self.published.append(event)
        self.handle_event(len(self.published) - 1, broker, None)

    def handle_event(self, number: int, broker: int, sender: int | None) -> None:
        for one in self.brokers[broker].match(self.published[number]):
            if isinstance(one, int):
                if one != sender:
                    self.forwarded += 1
                    self.links[broker, one].append(number)
            else:
                self.delivered.append((one, broker, number))

    def handle(self, message: Any, broker: int, sender: int) -> None:
        if isinstance(message, int):
            self.handle_event(message, broker, sender)
        else:
            self.send(broker, self.brokers[broker].receive(message, sender))

    def step(self, tape: Tape) -> bool:
        """Let one message arrive; False if none is under way."""
        waiting = [link for link, messages in self.links.items() if messages]
        if not waiting:
            return False
        sender, broker = tape.of(waiting)
        self.handle(self.links[sender, broker].popleft(), broker, sender)
        return True

    def drain(self, tape: Tape) -> None:
        """Let all messages arrive."""
        for _ in range(10_000):
            if not self.step(tape):
                break
        else:
            raise AssertionError("the brokers do not come to rest")
        for one in self.wanted:
            self.settled.setdefault(one, len(self.published))

    def check_links(self) -> None:
        """Whatever is under way, what a neighbour will know is what is exported to it."""
        for i, j in self.links:
            updates = [message for message in self.links[i, j] if isinstance(message, TableUpdate)]
            self.check_link(i, j, self.brokers[i].subscriptions, self.brokers[j].subscriptions, updates)

    def check_link(
        self, i: int, j: int, ours: Table[Any], theirs: Table[Any], under_way: Sequence[TableUpdate]
    ) -> None:
        known = held(theirs, i)
        for update in under_way:
            known = received(known, update)
        assert set(known) == set(oracle(ours).exported(j)), (i, j)

    def check_deliveries(self) -> None:
        """Nothing came twice, and whoever was known everywhere when an event was published has got it."""
        assert len(set(self.delivered)) == len(self.delivered)
        got = set(self.delivered)
        for (client, broker, filter), since in self.settled.items():
            for number, event in enumerate(self.published[since:], since):
                assert not filter.matches(event) or (client, broker, number) in got

    def check_exact(self, tape: Tape) -> None:
        """At rest, events reach just those who want them, over just the links they need."""
        self.drain(tape)
        for broker, event in itertools.product(self.tree, EVENTS):
            self.check_event(broker, event, tape)

    def check_event(self, broker: int, event: Mapping[str, object], tape: Tape) -> None:
        self.delivered.clear()
        self.forwarded = 0
        self.publish(broker, event)
        self.drain(tape)
        wanted = {(client, at) for client, at, filter in self.wanted if filter.matches(event)}
        assert sorted((client, at) for client, at, _ in self.delivered) == sorted(wanted)
        assert self.forwarded == len(self.needed(broker, self.targets(event, {at for _, at in wanted})))

    def targets(self, event: Mapping[str, object], wanted: set[int]) -> set[int]:
        """The brokers that an event must reach, given those where it is wanted."""
        return wanted

    def needed(self, broker: int, targets: set[int], sender: int | None = None) -> set[tuple[int, int]]:
        """The links between a broker and some others."""
        found: set[tuple[int, int]] = set()
        for neighbour in self.tree[broker]:
            if neighbour != sender:
                beyond = self.needed(neighbour, targets, broker)
                if beyond or neighbour in targets:
                    found |= {(broker, neighbour)} | beyond
        return found


# Networks with advertisements


class Message(NamedTuple):
    """What travels: which table it is for, and what changes there."""

    kind: str
    update: TableUpdate


def messages(told: NeighbourUpdates[Any]) -> Mapping[Any, Message]:
    assert not told.advertisements.keys() & told.subscriptions.keys()
    return {
        **{j: Message("advertise", update) for j, update in told.advertisements.items()},
        **{j: Message("subscribe", update) for j, update in told.subscriptions.items()},
    }


class AdvertisingBroker(Broker):
    """A broker that knows of advertisements."""

    advertisements: Table[Any]
    drop: bool

    @abstractmethod
    def advertise(self, client: Hashable, filter: Filter) -> Mapping[Any, Message]: ...

    @abstractmethod
    def unadvertise(self, client: Hashable, filter: Filter) -> Mapping[Any, Message]: ...

    @abstractmethod
    def may_publish(self, event: Mapping[str, object], client: Hashable, filter: Filter) -> bool: ...


class AdvertisingNetwork(Network[AdvertisingBroker]):
    """Clients that publish only what they advertise."""

    def __init__(
        self, tree: Mapping[int, Sequence[int]], make: Callable[[int, Sequence[int]], AdvertisingBroker]
    ) -> None:
        super().__init__(tree, make)
        self.promised: dict[tuple[str, int, Filter], int | None] = {}
        """advertisements, with the number of events published before they were known everywhere"""
        self.sure: list[int] = []
        """events published after their advertisement was known everywhere"""

    def toggle_advertisement(self, client: str, broker: int, filter: Filter) -> None:
        """Advertise, or take back what is advertised."""
        one = (client, broker, filter)
        if one in self.promised:
            del self.promised[one]
            self.send(broker, self.brokers[broker].unadvertise(client, filter))
        else:
            self.promised[one] = None
            self.send(broker, self.brokers[broker].advertise(client, filter))

    def publish_promised(self, tape: Tape) -> None:
        """Publish something that is advertised."""
        if self.promised:
            (client, broker, filter), since = tape.of(sorted(self.promised.items(), key=str))
            event = tape.of([event for event in EVENTS if filter.matches(event)])
            assert self.brokers[broker].may_publish(event, client, filter)
            if since is not None:
                self.sure.append(len(self.published))
            self.publish(broker, event)

    def drain(self, tape: Tape) -> None:
        super().drain(tape)
        for one, since in self.promised.items():
            self.promised[one] = len(self.published) if since is None else since

    def check_links(self) -> None:
        for i, j in self.links:
            ours, theirs = self.brokers[i], self.brokers[j]
            sent = [message for message in self.links[i, j] if isinstance(message, Message)]
            ads, subs = ([m.update for m in sent if m.kind == kind] for kind in ("advertise", "subscribe"))
            self.check_link(i, j, ours.advertisements, theirs.advertisements, ads)
            if not ours.drop:  # else the neighbour does not do just what it is told
                self.check_link(i, j, ours.subscriptions, theirs.subscriptions, subs)

    def check_rest(self) -> None:
        """Nothing is under way: neighbours agree."""
        for i, j in self.links:
            self.check_link(i, j, self.brokers[i].subscriptions, self.brokers[j].subscriptions, ())

    def check_deliveries(self) -> None:
        assert len(set(self.delivered)) == len(self.delivered)
        got = set(self.delivered)
        for (client, broker, filter), since in self.settled.items():
            for number in self.sure:
                if number >= since and filter.matches(self.published[number]):
                    assert (client, broker, number) in got

    def check_exact(self, tape: Tape) -> None:
        self.drain(tape)
        for (_, broker, filter), event in itertools.product(list(self.promised), EVENTS):
            if filter.matches(event):
                self.check_event(broker, event, tape)
