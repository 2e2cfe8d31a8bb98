"""A broker with one index, beside naive dictionaries: the same recipients, and neighbours that know the same."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.examples import few
from tests.tables.suite import POOL

from fieldfare import Event
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter, unnamed
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import Send
from fieldfare.routing.broker import Broker
from fieldfare.routing.routes import LOCAL
from fieldfare.routing.strategies import by_name
from fieldfare.tables.network_index import NetworkIndex

EVENTS = [Event({"x": x, "y": y, "s": s}) for x in range(4) for y in (0, 2) for s in ("abc", "b")]
NEIGHBOURS = ("north", "south", "west")
filters = st.sampled_from(POOL)
clients = st.sampled_from(("ana", "bob", "eve"))
ids = st.sampled_from(("1", "2"))
neighbours = st.sampled_from(NEIGHBOURS)


class OneIndex(RuleBasedStateMachine):
    """Clients and neighbours come, subscribe, publish and go."""

    @initialize(
        strategy=st.sampled_from(("flooding", "simple", "identity", "covering", "merging", "book-merging")),
        network=st.booleans(),
    )
    def begin(self, strategy: str, network: bool) -> None:
        self.strategy = by_name(strategy)
        self.broker = Broker("oslo", self.strategy, index=NetworkIndex() if network else None)
        self.network = network
        self.subscribed: dict[tuple[str, str], Filter] = {}
        self.heard: dict[str, list[Filter]] = {}
        """the filters of each neighbour"""
        self.told: dict[str, list[Filter]] = {}
        """the filters that each neighbour was told"""
        self.published = 0

    def _covers(self) -> bool:
        return self.strategy.table is not None and not self.strategy.table().redundant

    def _deliver(self, sends: list[Send]) -> None:
        for send in sends:
            if send.to in self.told:
                assert isinstance(send.message, m.FilterUpdate)
                self.told[send.to] = self._changed(self.told[send.to], send.message)

    def _changed(self, known: list[Filter], update: m.FilterUpdate) -> list[Filter]:
        """The definition of an update: first removals, then additions, each of which replaces smaller filters."""
        known = [filter for filter in known if filter not in update.removed]
        for filter in update.added:
            if filter in known or (self._covers() and any(other.covers(filter) for other in known)):
                continue
            if self._covers():
                known = [other for other in known if not filter.covers(other)]
            known.append(filter)
        return known

    @rule(client=clients, id=ids, filter=filters)
    def subscribe(self, client: str, id: str, filter: Filter) -> None:
        self._deliver(self.broker.receive(m.Subscribe(id, filter), client, now=0.0))
        self.subscribed[client, id] = filter

    @rule(client=clients, id=ids)
    def unsubscribe(self, client: str, id: str) -> None:
        self._deliver(self.broker.receive(m.Unsubscribe(id), client, now=0.0))
        self.subscribed.pop((client, id), None)

    @rule(client=clients)
    def leave(self, client: str) -> None:
        self._deliver(self.broker.receive(m.Leave(), client, now=0.0))
        self.subscribed = {who: filter for who, filter in self.subscribed.items() if who[0] != client}

    @rule(neighbour=neighbours)
    def connect(self, neighbour: str) -> None:
        if neighbour not in self.heard:
            self.heard[neighbour], self.told[neighbour] = [], []
            self._deliver(self.broker.receive(m.Connect(), neighbour, now=0.0))

    @rule(neighbour=neighbours)
    def disconnect(self, neighbour: str) -> None:
        if neighbour in self.heard:
            del self.heard[neighbour], self.told[neighbour]
            self._deliver(self.broker.receive(m.Disconnect(), neighbour, now=0.0))

    @precondition(lambda self: self.heard and self.strategy.table is not None)
    @rule(data=st.data(), added=st.lists(filters, max_size=3, unique=True), count=st.integers(0, 2))
    def update(self, data: st.DataObject, added: list[Filter], count: int) -> None:
        neighbour = data.draw(st.sampled_from(sorted(self.heard)))
        removed = tuple(self.heard[neighbour][:count])
        sent = tuple(NamedFilter(f"{neighbour}/c/{n}", f) if self.strategy.named else f for n, f in enumerate(added))
        update = m.FilterUpdate(sent, removed)
        self._deliver(self.broker.receive(update, neighbour, now=0.0))
        self.heard[neighbour] = self._changed(self.heard[neighbour], update)

    @rule(data=st.data(), events=st.lists(st.sampled_from(EVENTS), min_size=1, max_size=10))
    def route(self, data: st.DataObject, events: list[Event]) -> None:
        sender = data.draw(st.sampled_from((LOCAL, *self.heard)))
        numbers = range(self.published, self.published + len(events))
        self.published += len(events)
        forwards = [m.Forward(event, "p", number) for event, number in zip(events, numbers, strict=True)]
        routed = self.broker.route(forwards, sender, now=0.0)
        assert [one.event.event for one in routed] == events
        for one in routed:
            event = one.event.event
            wanted: dict[str, set[str]] = {}
            for (client, id), filter in self.subscribed.items():
                if filter.matches(event):
                    wanted.setdefault(client, set()).add(id)
            assert {client: set(found) for client, found in one.clients.items()} == wanted
            assert all(len(found) == len(set(found)) for found in one.clients.values())
            flood = self.strategy.table is None
            assert set(one.neighbours) == {
                neighbour
                for neighbour, known in self.heard.items()
                if neighbour != sender and (flood or any(filter.matches(event) for filter in known))
            }
        assert self.broker.route(forwards, sender, now=0.0) == []

    @invariant()
    def neighbours_know_the_filters_of_all_others(self) -> None:
        if self.strategy.table is None:
            return
        for neighbour, told in self.told.items():
            assert set(told) == set(self.broker.routes.exports(neighbour))
            others = [*self.subscribed.values(), *(f for n, fs in self.heard.items() if n != neighbour for f in fs)]
            for event in EVENTS:
                assert any(f.matches(event) for f in told) == any(f.matches(event) for f in others)

    @invariant()
    def the_index_has_no_filter_that_nobody_wants(self) -> None:
        if self.network or self.strategy.merge_stored:
            return  # forgets later; has mergers beside the filters
        wanted = {*self.subscribed.values(), *(unnamed(f) for known in self.heard.values() for f in known)}
        assert {unnamed(filter) for filter in self.broker._index} == wanted


OneIndex.TestCase.settings = settings(few(50), stateful_step_count=20)
TestOneIndex = OneIndex.TestCase
