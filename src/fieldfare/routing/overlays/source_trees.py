"""`SourceTrees`: simple routing in an overlay with cycles. Each event takes the tree of shortest ways from its source.

Every broker knows the filters of the clients of every other broker, and all links. From these the broker computes the
next hops of an event of a source: the neighbours with a matching client behind them, on the source's tree. An event
crosses no link twice, and the events of a publisher, all on the same tree, stay in order.

All brokers pass on the filters of a broker's clients, under growing numbers. Links keep order, so the numbers on each
link rise by one; an update without a higher number is old. The book's version, in which each subscription travels
alone, needs tombstones, so that the end of a subscription does not chase it in circles; here the numbers serve.
"""

from __future__ import annotations

from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import FilterUpdate, Forward, InterestUpdate, LinkUpdate, Role, RoutingMessage
from fieldfare.routing.overlays.link_state import LinkState
from fieldfare.routing.routes import LOCAL, Outgoing, ProtocolError, Routes
from fieldfare.tables.shared_index import Entries, Part, SharedIndex


class SourceTrees(Routes):
    """Routes by a tree for each source."""

    def __init__(self, name: str, life: int, index: SharedIndex) -> None:
        super().__init__()
        self.name = name
        self.state = LinkState(name, life)
        self.state.announce(())
        self._numbers: dict[str, tuple[int, int]] = {name: (life, 0)}
        self._wanted: dict[str, dict[Filter, None]] = {name: {}}
        self._homes: Part[dict[str, None]] = index.part()
        """the brokers whose clients subscribe to each filter"""

    def connect(self, neighbour: str, role: Role) -> list[Outgoing]:
        """Add a link and send the neighbour all known links and filters."""
        self.roles[neighbour] = Role.PEER
        known = [Outgoing(neighbour, links) for links in self.state.known.values() if links.origin != self.name]
        wants = [Outgoing(neighbour, self._all_of(origin)) for origin in self._wanted]
        return known + wants + self._announce()

    def disconnect(self, neighbour: str) -> list[Outgoing]:
        """Remove a link; all trees are computed anew."""
        del self.roles[neighbour]
        return self._announce()

    def apply(self, update: FilterUpdate, sender: str) -> list[Outgoing]:
        """Announce a change of the own clients' filters to all brokers."""
        if sender != LOCAL:
            raise ProtocolError("routing by trees of sources knows no FilterUpdate between brokers")
        if update.about == "advertisements":
            return []
        life, count = self._numbers[self.name]
        news = InterestUpdate(self.name, (life, count + 1), update.added, update.removed)
        self._note(news)
        return self._to_others(news)

    def receive(self, message: RoutingMessage, sender: str, now: float) -> list[Outgoing]:
        """Note the links or filters of another broker and pass them on, unless they are old."""
        match message:
            case LinkUpdate(origin=self.name) | InterestUpdate(origin=self.name):
                return self._insist(message)
            case LinkUpdate():
                return self._to_others(message, sender) if self.state.accept(message) else []
            case InterestUpdate():
                if message.number <= self._numbers.get(message.origin, (-1, 0)):
                    return []
                self._note(message)
                return self._to_others(message, sender)
        return super().receive(message, sender, now)

    def _insist(self, message: LinkUpdate | InterestUpdate) -> list[Outgoing]:
        """Announce anew with a higher number, if others remember an earlier life of the broker."""
        if isinstance(message, LinkUpdate):
            mine = self.state.known[self.name]
            old = message.number < mine.number or message == mine
            return [] if old else self._announce(above=message.number)
        same = not message.all or set(message.added) == set(self._wanted[self.name])
        if message.number < self._numbers[self.name] or (message.number == self._numbers[self.name] and same):
            return []
        life, count = message.number
        self._numbers[self.name] = (life, count + 1)
        return self._to_others(self._all_of(self.name))

    def _announce(self, above: tuple[int, int] = (0, 0)) -> list[Outgoing]:
        return self._to_others(self.state.announce(self.roles, above))

    def _to_others(self, message: RoutingMessage, sender: str = LOCAL) -> list[Outgoing]:
        return [Outgoing(other, message) for other in self.roles if other != sender]

    def _all_of(self, origin: str) -> InterestUpdate:
        return InterestUpdate(origin, self._numbers[origin], tuple(self._wanted[origin]), all=True)

    def _note(self, news: InterestUpdate) -> None:
        self._numbers[news.origin] = news.number
        wanted = self._wanted.setdefault(news.origin, {})
        added = dict.fromkeys(news.added)
        removed = [old for old in wanted if old not in added] if news.all else news.removed
        for filter in removed:
            if wanted.pop(filter, filter) is None:
                self._forget(news.origin, filter)
        for filter in added:
            if filter not in wanted:
                wanted[filter] = None
                homes = self._homes.find(filter)
                if homes is None:
                    self._homes.add({news.origin: None}, filter)
                else:
                    homes[news.origin] = None

    def _forget(self, origin: str, filter: Filter) -> None:
        homes = self._homes.find(filter)
        assert homes is not None
        del homes[origin]
        if not homes:
            self._homes.remove(filter)

    @property
    def needs_sweep(self) -> bool:
        """Whether there are unreachable brokers."""
        return bool(self.state.unreachable)

    def sweep(self) -> list[Outgoing]:
        """Forget absent brokers and the filters of their clients."""
        for origin in self.state.sweep():
            self._numbers.pop(origin, None)
            for filter in self._wanted.pop(origin, {}):
                self._forget(origin, filter)
        return []

    def match(self, event: Forward, sender: str, matched: Entries) -> set[str]:
        """Return the neighbours on the way to matching clients."""
        homes = {origin for origins in self._homes.select(matched) for origin in origins}
        hops = self.state.hops(event.source)
        return {hops[home] for home in homes if home in hops}

    @property
    def entries(self) -> int:
        """The number of subscriptions of all brokers."""
        return sum(map(len, self._wanted.values()))
