"""A few brokers, links that keep order, and every choice of what happens next left to the test.

Beside the brokers it keeps the slow, obvious twin: who wants what, and what each broker has told each neighbour.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from math import inf

from tools.samples import UNIVERSE

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.overlays.shared_tree import SharedTree
from fieldfare.routing.routes import LOCAL
from fieldfare.routing.table_routes import TableRoutes


def meaning(filters: Iterable[Filter]) -> frozenset[int]:
    """The events of the universe that match one of them."""
    wanted = list(filters)
    return frozenset(i for i, event in enumerate(UNIVERSE) if any(filter.matches(event) for filter in wanted))


class Net:
    """Brokers, links and clients; a client is called after its broker: `b0.1`."""

    def __init__(
        self, make: Callable[[str, int], Broker], links: Sequence[tuple[str, str, m.Role]], names: Iterable[str]
    ) -> None:
        """Brokers with their links up; `make` makes one of a name and the number of its life."""
        self.make = make
        self.brokers = {name: make(name, 0) for name in names}
        self.lives = 0
        self.channels: dict[tuple[str, str], deque[m.Message]] = {}
        self.told: dict[tuple[str, str], set[Filter]] = {}
        """what a neighbour will know when all that is on the way has arrived"""
        self.now = 0.0
        self.published: dict[tuple[str, int], tuple[Event, frozenset[str]]] = {}
        """each event, with the clients that wanted it when it was published"""
        self.wanting: dict[str, dict[str, Filter]] = {}
        self.promising: dict[str, dict[str, Filter]] = {}
        self.delivered: dict[str, list[tuple[str, int]]] = {}
        self.messages = 0
        self.count = 0
        for a, b, role in links:
            self.connect(a, b, role)

    # What happens

    def connect(self, a: str, b: str, role: m.Role = m.Role.PEER) -> None:
        """Let `b` be that to `a`."""
        for pair in ((a, b), (b, a)):
            self.channels[pair] = deque()
            self.told[pair] = set()
        self._send(a, self.brokers[a].receive(m.Connect(role), b, self.now))
        self._send(b, self.brokers[b].receive(m.Connect(role.opposite), a, self.now))

    def disconnect(self, a: str, b: str) -> None:
        for pair in ((a, b), (b, a)):
            del self.channels[pair], self.told[pair]
        self._send(a, self.brokers[a].receive(m.Disconnect(), b, self.now))
        self._send(b, self.brokers[b].receive(m.Disconnect(), a, self.now))

    def crash(self, broker: str, *, keep: bool) -> None:
        """Let a broker die and come back at once, with what its snapshot holds or with nothing; links are down."""
        saved = self.brokers[broker].snapshot()
        for a, b in [pair for pair in self.channels if pair[0] == broker]:
            for pair in ((a, b), (b, a)):
                del self.channels[pair], self.told[pair]
            self._send(b, self.brokers[b].receive(m.Disconnect(), broker, self.now))
        self.lives += 1
        self.brokers[broker] = self.make(broker, self.lives)
        if keep:
            self.brokers[broker].restore(saved)
        else:
            for client in [c for c in {*self.wanting, *self.promising} if c.startswith(broker + ".")]:
                self.wanting.pop(client, None)
                self.promising.pop(client, None)

    def subscribe(self, client: str, id: str, filter: Filter) -> None:
        self.wanting.setdefault(client, {})[id] = filter
        self._client(client, m.Subscribe(id, filter))

    def unsubscribe(self, client: str, id: str) -> None:
        self.wanting.get(client, {}).pop(id, None)
        self._client(client, m.Unsubscribe(id))

    def advertise(self, client: str, id: str, filter: Filter) -> None:
        self.promising.setdefault(client, {})[id] = filter
        self._client(client, m.Advertise(id, filter))

    def unadvertise(self, client: str, id: str) -> None:
        self.promising.get(client, {}).pop(id, None)
        self._client(client, m.Unadvertise(id))

    def leave(self, client: str) -> None:
        self.wanting.pop(client, None)
        self.promising.pop(client, None)
        self._client(client, m.Leave())

    def publish(self, client: str, event: Event) -> None:
        self.count += 1
        wanted = frozenset(c for c, mine in self.wanting.items() if any(f.matches(event) for f in mine.values()))
        self.published[client, self.count] = (event, wanted)
        self._client(client, m.Publish(event, self.count))

    def arrive(self, pair: tuple[str, str]) -> None:
        """Let the next message of a link arrive."""
        message = self.channels[pair].popleft()
        self._send(pair[1], self.brokers[pair[1]].receive(message, pair[0], self.now))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for name, broker in self.brokers.items():
            self._send(name, broker.tick(self.now))

    def busy(self) -> list[tuple[str, str]]:
        """The links with something on the way."""
        return [pair for pair, channel in self.channels.items() if channel]

    def drain(self, limit: int = 20_000) -> None:
        """Let everything arrive, link by link in turn. Optimizers say something for ever: they get a while."""
        prefix = next(iter(self.brokers.values())).strategy.prefix
        until = inf if prefix is None else self.now + 2 * prefix.patience + 3 * prefix.beat
        for _ in range(limit):
            busy = self.busy()
            if not busy:
                wakes = [broker.wakes for broker in self.brokers.values() if broker.wakes is not None]
                if not wakes or self.now > until:
                    return
                self.pass_time(max(0.0, max(wakes) - self.now))
            for pair in busy:
                self.arrive(pair)
        raise AssertionError("the network does not come to rest")

    def _client(self, client: str, message: m.Message) -> None:
        home = client.split(".", 1)[0]
        self._send(home, self.brokers[home].receive(message, client, self.now))

    def _send(self, broker: str, sends: Iterable[m.Send]) -> None:
        for to, message in ((send.to, send.message) for send in sends):
            if isinstance(message, m.Deliver):
                self._deliver(to, message)
            elif isinstance(message, m.Refuse):
                assert to not in self.brokers
            else:
                self.messages += 1
                self.channels[broker, to].append(message)
                if isinstance(message, m.FilterUpdate) and message.about == "subscriptions":
                    self._mirror((broker, to), message)

    def _deliver(self, client: str, message: m.Deliver) -> None:
        """Safety: published, asked for at this moment, and never twice."""
        event, _ = self.published[message.publisher, message.sequence]
        assert event == message.event
        mine = self.wanting.get(client, {})
        assert {id for id, filter in mine.items() if filter.matches(event)} == set(message.subscriptions) != set()
        before = self.delivered.setdefault(client, [])
        assert (message.publisher, message.sequence) not in before, "delivered twice"
        before.append((message.publisher, message.sequence))

    def _mirror(self, pair: tuple[str, str], tell: m.FilterUpdate) -> None:
        known = self.told[pair]
        known.difference_update(tell.removed)
        for filter in tell.added:
            if not isinstance(filter, NamedFilter) and self.covers:
                known.difference_update([other for other in known if filter.covers(other)])
            known.add(filter)

    @property
    def covers(self) -> bool:
        """Do brokers forget what a larger filter covers?"""
        routes = next(iter(self.brokers.values())).routes
        inner = routes.inner if isinstance(routes, SharedTree) else routes
        return isinstance(inner, TableRoutes) and not inner.subscriptions.redundant

    # What must be true

    def wanted_of(self, broker: str, neighbour: str) -> frozenset[int]:
        """What a broker wants for anybody but one neighbour: its clients by the twin, others by its table."""
        routes = self.brokers[broker].routes
        assert isinstance(routes, TableRoutes)
        table = routes.subscriptions
        remote = [f for f in table.filters() if set(table.interfaces(f)) - {neighbour, LOCAL}]
        local = [f for client, mine in self.wanting.items() if client.startswith(broker + ".") for f in mine.values()]
        return meaning([*remote, *local])

    def known_of(self, broker: str, neighbour: str) -> frozenset[int]:
        """What a broker will send to a neighbour, by its table."""
        routes = self.brokers[broker].routes
        assert isinstance(routes, TableRoutes)
        table = routes.subscriptions
        return meaning(f for f in table.filters() if neighbour in table.interfaces(f))
