"""`SharedTree`: any strategy in an overlay with cycles. Brokers agree on a tree of links, and route over that.

Links outside the tree rest: nobody is told anything over them. When a link of the tree breaks, one that rested takes
its place, and what must be known beyond it is told over it. While brokers do not yet agree, tells may run in a circle;
once they do, each broker takes back what it told over links that rest now, and with that goes all that only a circle
upheld.
"""

from __future__ import annotations

from fieldfare.protocol.messages import FilterUpdate, Forward, LinkUpdate, Role, RoutingMessage
from fieldfare.routing.overlays.link_state import LinkState
from fieldfare.routing.routes import LinkRoutes, Outgoing, Routes


class SharedTree(Routes):
    """Routes over a spanning tree of all links; the others rest."""

    def __init__(self, name: str, life: int, inner: LinkRoutes) -> None:
        """A broker without links."""
        super().__init__()
        self.state = LinkState(name, life)
        self.inner = inner
        self.state.announce(())

    def connect(self, neighbour: str, role: Role) -> list[Outgoing]:
        """A new link rests until all agree that it is of the tree. Roles of a hierarchy have no meaning here."""
        self.roles[neighbour] = Role.PEER
        outgoing = self.inner.connect(neighbour, Role.RESTING)
        known = [Outgoing(neighbour, links) for links in self.state.known.values() if links.origin != self.state.name]
        return outgoing + known + self._announce()

    def disconnect(self, neighbour: str) -> list[Outgoing]:
        """A link is gone; there may be another way."""
        del self.roles[neighbour]
        return self.inner.disconnect(neighbour) + self._announce()

    def apply(self, update: FilterUpdate, sender: str) -> list[Outgoing]:
        """As without cycles."""
        return self.inner.apply(update, sender)

    def receive(self, message: RoutingMessage, sender: str, now: float) -> list[Outgoing]:
        """Somebody's links have changed: pass it on, and look at the tree again."""
        if not isinstance(message, LinkUpdate):
            return super().receive(message, sender, now)
        if message.origin == self.state.name:
            # From an earlier life of ours: go beyond it, or nobody will believe what we say now.
            mine = self.state.known[self.state.name]
            return [] if message.number < mine.number or message == mine else self._announce(above=message.number)
        if not self.state.accept(message):
            return []
        return [Outgoing(other, message) for other in self.roles if other != sender] + self._follow_tree()

    def _announce(self, above: tuple[int, int] = (0, 0)) -> list[Outgoing]:
        news = self.state.announce(self.roles, above)
        return [Outgoing(other, news) for other in self.roles] + self._follow_tree()

    def _follow_tree(self) -> list[Outgoing]:
        """Wake the links that are of the tree now, and let the others rest."""
        used = self.state.tree[self.state.name]
        outgoing: list[Outgoing] = []
        for neighbour in self.roles:
            role = Role.PEER if neighbour in used else Role.RESTING
            if self.inner.roles[neighbour] is not role:
                outgoing += self.inner.set_role(neighbour, role)
        return outgoing

    @property
    def needs_sweep(self) -> bool:
        """Are there brokers that cannot be reached?"""
        return bool(self.state.unreachable)

    def sweep(self) -> list[Outgoing]:
        """Forget the links of brokers that are gone."""
        self.state.sweep()
        return []

    def resting(self) -> list[str]:
        """The neighbours over links that are not used."""
        return [neighbour for neighbour, role in self.inner.roles.items() if role is Role.RESTING]

    def match(self, event: Forward, sender: str) -> set[str]:
        """As without cycles; an event that runs in a circle while brokers disagree is known where it was before."""
        return self.inner.match(event, sender)

    @property
    def entries(self) -> int:
        """As without cycles."""
        return self.inner.entries
