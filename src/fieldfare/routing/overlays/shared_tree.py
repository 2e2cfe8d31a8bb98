"""`SharedTree`: any strategy in an overlay with cycles. Brokers agree on a tree of links, and route over the tree.

Links outside the tree rest: no filters travel over them. When a link of the tree breaks, a resting link replaces it,
and the filters travel over the new link. While brokers do not agree yet, filter updates may run in a circle. After the
agreement each broker withdraws its filters from resting links, and with them go all filters that only a circle upheld.
"""

from __future__ import annotations

from collections.abc import Sequence

from fieldfare.events.event import Event
from fieldfare.protocol.messages import FilterUpdate, Forward, LinkUpdate, Role, RoutingMessage
from fieldfare.routing.overlays.link_state import LinkState
from fieldfare.routing.routes import LinkRoutes, Outgoing, Routes
from fieldfare.tables.shared_index import Entries


class SharedTree(Routes):
    """Routes over a spanning tree of all links; the other links rest."""

    def __init__(self, name: str, life: int, inner: LinkRoutes) -> None:
        super().__init__()
        self.state = LinkState(name, life)
        self.inner = inner
        self.state.announce(())

    def connect(self, neighbour: str, role: Role) -> list[Outgoing]:
        """Add a link, which rests until all brokers agree on its place in the tree.

        Roles of a hierarchy have no meaning here.
        """
        self.roles[neighbour] = Role.PEER
        outgoing = self.inner.connect(neighbour, Role.RESTING)
        known = [Outgoing(neighbour, links) for links in self.state.known.values() if links.origin != self.state.name]
        return outgoing + known + self._announce()

    def disconnect(self, neighbour: str) -> list[Outgoing]:
        """Remove a link and announce the rest; another link may take its place."""
        del self.roles[neighbour]
        return self.inner.disconnect(neighbour) + self._announce()

    def apply(self, update: FilterUpdate, sender: str) -> list[Outgoing]:
        """Apply a filter update over the links of the tree."""
        return self.inner.apply(update, sender)

    def receive(self, message: RoutingMessage, sender: str, now: float) -> list[Outgoing]:
        """Note the links of another broker, pass the announcement on, and follow the new tree."""
        if not isinstance(message, LinkUpdate):
            return super().receive(message, sender, now)
        if message.origin == self.state.name:
            # From an earlier life of this broker: exceed its number, or others will ignore the present announcements.
            mine = self.state.known[self.state.name]
            return [] if message.number < mine.number or message == mine else self._announce(above=message.number)
        if not self.state.accept(message):
            return []
        return [Outgoing(other, message) for other in self.roles if other != sender] + self._follow_tree()

    def _announce(self, above: tuple[int, int] = (0, 0)) -> list[Outgoing]:
        news = self.state.announce(self.roles, above)
        return [Outgoing(other, news) for other in self.roles] + self._follow_tree()

    def _follow_tree(self) -> list[Outgoing]:
        """Wake the links of the tree, and let the others rest."""
        used = self.state.tree[self.state.name]
        outgoing: list[Outgoing] = []
        for neighbour in self.roles:
            role = Role.PEER if neighbour in used else Role.RESTING
            if self.inner.roles[neighbour] is not role:
                outgoing += self.inner.set_role(neighbour, role)
        return outgoing

    @property
    def needs_sweep(self) -> bool:
        """Whether there are unreachable brokers."""
        return bool(self.state.unreachable)

    def sweep(self) -> list[Outgoing]:
        """Forget the links of absent brokers."""
        self.state.sweep()
        return []

    def note_forwards(self, neighbour: str, wanted: int, unwanted: Sequence[Event]) -> None:
        """Pass the counts on to the routes over the tree."""
        self.inner.note_forwards(neighbour, wanted, unwanted)

    @property
    def wakes(self) -> float | None:
        """The time at which the routes over the tree have work."""
        return self.inner.wakes

    def tick(self, now: float) -> list[Outgoing]:
        """Let the routes over the tree do the work that is due."""
        return self.inner.tick(now)

    def resting(self) -> list[str]:
        """Return the neighbours over resting links."""
        return [neighbour for neighbour, role in self.inner.roles.items() if role is Role.RESTING]

    def match(self, event: Forward, sender: str, matched: Entries) -> set[str]:
        """Return the recipients over the tree.

        An event that runs in a circle while brokers disagree is dropped as a duplicate.
        """
        return self.inner.match(event, sender, matched)

    @property
    def entries(self) -> int:
        """The size of the tables of the inner strategy."""
        return self.inner.entries
