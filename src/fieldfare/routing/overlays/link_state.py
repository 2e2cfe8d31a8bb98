"""`LinkState`: the links of all brokers, as far as a broker knows, and the trees computed from the links.

Each broker announces its links on every change, under the next number, and all brokers pass newer announcements on.
Soon all know the same, and compute the same trees without further messages. A link counts only if both ends announce
the link, so nobody needs to announce the absence of a broker.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property

from fieldfare.protocol.messages import LinkUpdate


class LinkState:
    """The links of all brokers, as a single broker knows them.

    >>> state = LinkState("a")
    >>> news = [state.announce(["b", "c"])]
    >>> [state.accept(LinkUpdate("b", (0, 1), ("a", "c"))), state.accept(LinkUpdate("c", (0, 1), ("a", "b")))]
    [True, True]
    >>> sorted(state.tree["a"]), state.hops("a"), state.hops("c")
    (['b', 'c'], {'b': 'b', 'c': 'c'}, {})
    """

    def __init__(self, name: str, life: int = 0) -> None:
        """Make the state of a broker that knows only itself."""
        self.name = name
        self.life = life
        self.known: dict[str, LinkUpdate] = {}
        self._missed: set[str] = set()
        """brokers that were unreachable at the last sweep"""

    def announce(self, neighbours: Iterable[str], above: tuple[int, int] = (0, 0)) -> LinkUpdate:
        """Announce the broker's own links, under a number above all earlier numbers and above `above`."""
        mine = self.known.get(self.name)
        life, count = max(mine.number if mine is not None else (self.life, 0), above)
        news = LinkUpdate(self.name, (life, count + 1), tuple(sorted(neighbours)))
        self._know(news)
        return news

    def accept(self, news: LinkUpdate) -> bool:
        """Note the links of another broker; False if the announcement is not newer."""
        known = self.known.get(news.origin)
        if known is not None and known.number >= news.number:
            return False
        self._know(news)
        return True

    def _know(self, news: LinkUpdate) -> None:
        self.known[news.origin] = news
        self._changed()

    def _changed(self) -> None:
        for computed in ("links", "tree", "unreachable", "_hops"):
            self.__dict__.pop(computed, None)

    # Forgetting

    @cached_property
    def unreachable(self) -> set[str]:
        """The known brokers to which no path of links leads: gone, separated, or not yet linked."""
        return self.known.keys() - {self.name, *self.hops(self.name)}

    def sweep(self) -> set[str]:
        """Forget the brokers that were unreachable at the last sweep too, and return them.

        A returning broker announces again.
        """
        gone = self.unreachable & self._missed
        for origin in gone:
            del self.known[origin]
        self._changed()
        self._missed = self.unreachable
        return gone

    # What follows

    @cached_property
    def links(self) -> dict[str, list[str]]:
        """The neighbours of each broker over links that both ends announce."""
        said = {origin: frozenset(links.neighbours) for origin, links in self.known.items()}
        return {a: sorted(b for b in theirs if a in said.get(b, ())) for a, theirs in sorted(said.items())}

    @cached_property
    def tree(self) -> dict[str, set[str]]:
        """A spanning tree, the same for all brokers with the same knowledge.

        Links in order, without those that close a cycle.

        When a link breaks, a single other link replaces it, and the rest of the tree stays.
        """
        group = {name: name for name in self.links}

        def root(name: str) -> str:
            while group[name] != name:
                group[name] = name = group[group[name]]
            return name

        tree: dict[str, set[str]] = {name: set() for name in self.links}
        for a, b in self._edges():
            if root(a) != root(b):
                group[root(a)] = root(b)
                tree[a].add(b)
                tree[b].add(a)
        return tree

    def _edges(self) -> Iterator[tuple[str, str]]:
        return ((a, b) for a, theirs in self.links.items() for b in theirs if a < b)

    @cached_property
    def _hops(self) -> dict[str, dict[str, str]]:
        return {}

    def hops(self, source: str) -> dict[str, str]:
        """Return the next hop to each broker beyond us, on the tree of shortest ways from a source."""
        if source not in self._hops:
            self._hops[source] = self._search(source)
        return self._hops[source]

    def _search(self, source: str) -> dict[str, str]:
        """Search breadth first, neighbours in order; brokers found through a neighbour are reached by the neighbour."""
        via: dict[str, str | None] = {source: None}
        waiting = deque([source])
        while waiting:
            here = waiting.popleft()
            for there in self.links.get(here, ()):
                if there not in via:
                    via[there] = there if here == self.name else via[here]
                    waiting.append(there)
        return {name: hop for name, hop in via.items() if hop is not None}
