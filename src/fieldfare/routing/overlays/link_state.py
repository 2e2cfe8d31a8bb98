"""`LinkState`: what the links of all brokers are, as far as one of them has heard; and the trees that follow.

Each broker says what its links are whenever that changes, under the next number, and everybody passes on what is newer
than what they knew. Soon all know the same, and all compute the same trees from it without further talk. A link counts
if both its ends say that it is there, so that a broker that is gone needs nobody to say so for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property

from fieldfare.protocol.messages import LinkUpdate


class LinkState:
    """The links of all brokers.

    >>> state = LinkState("a")
    >>> news = [state.announce(["b", "c"])]
    >>> [state.accept(LinkUpdate("b", (0, 1), ("a", "c"))), state.accept(LinkUpdate("c", (0, 1), ("a", "b")))]
    [True, True]
    >>> sorted(state.tree["a"]), state.hops("a"), state.hops("c")
    (['b', 'c'], {'b': 'b', 'c': 'c'}, {})
    """

    def __init__(self, name: str, life: int = 0) -> None:
        """One broker knows of itself only."""
        self.name = name
        self.life = life
        self.known: dict[str, LinkUpdate] = {}
        self._missed: set[str] = set()
        """those that could not be reached at the last sweep"""

    def announce(self, neighbours: Iterable[str], above: tuple[int, int] = (0, 0)) -> LinkUpdate:
        """What our own links are now, under a number that is higher than any before, and than one that we heard."""
        mine = self.known.get(self.name)
        life, count = max(mine.number if mine is not None else (self.life, 0), above)
        news = LinkUpdate(self.name, (life, count + 1), tuple(sorted(neighbours)))
        self._know(news)
        return news

    def accept(self, news: LinkUpdate) -> bool:
        """Note the links of another; False if we knew that, or something newer."""
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
        """The brokers that we have heard of and that no link leads to: gone, parted from us, or still to come."""
        return self.known.keys() - {self.name, *self.hops(self.name)}

    def sweep(self) -> set[str]:
        """Forget those that could not be reached at the last sweep either; gives them. Who returns says all again."""
        gone = self.unreachable & self._missed
        for origin in gone:
            del self.known[origin]
        self._changed()
        self._missed = self.unreachable
        return gone

    # What follows

    @cached_property
    def links(self) -> dict[str, list[str]]:
        """The neighbours of each broker over links that both ends know of."""
        said = {origin: frozenset(links.neighbours) for origin, links in self.known.items()}
        return {a: sorted(b for b in theirs if a in said.get(b, ())) for a, theirs in sorted(said.items())}

    @cached_property
    def tree(self) -> dict[str, set[str]]:
        """A spanning tree, the same for all who know the same: links in order, without those that close a cycle.

        When a link breaks, one other takes its place, and the rest stays as it is.
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
        """On the tree of shortest ways from a source: to whom we pass on what is meant for a broker beyond us."""
        if source not in self._hops:
            self._hops[source] = self._search(source)
        return self._hops[source]

    def _search(self, source: str) -> dict[str, str]:
        """Breadth first, neighbours in order; what is found through one of our neighbours is reached by it."""
        via: dict[str, str | None] = {source: None}
        waiting = deque([source])
        while waiting:
            here = waiting.popleft()
            for there in self.links.get(here, ()):
                if there not in via:
                    via[there] = there if here == self.name else via[here]
                    waiting.append(there)
        return {name: hop for name, hop in via.items() if hop is not None}
