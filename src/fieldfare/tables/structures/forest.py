"""`Forest`: filters as trees, a parent covering its children. It knows nothing of interfaces.

Each filter has one parent at most, and that parent need not be its closest cover: only some of the covering relations
are stored, which makes changes cheap. Children of one node never cover each other (*sibling purity*), hence the tree
roots are the minimal cover, whatever order the filters came in.

With `lazy`, removing a filter that is not a tree root hands its children to its parent without comparing them: below
the roots purity is lost, but the roots, and all that is found from them, stay right.

Two filters may mean the same without being equal. Then the older one counts as the larger: otherwise each could demand
to be the other's parent, and which of them is a root would depend on past moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fieldfare.filters.filter import EVERYTHING, Filter
from fieldfare.tables.base import Tests


@dataclass(eq=False, slots=True)
class ForestNode:
    """A filter and its place. The children are a dict for its order and its constant time."""

    filter: Filter
    number: int = 0
    """of arrival"""
    parent: ForestNode | None = None
    children: dict[Filter, ForestNode] = field(default_factory=dict)

    def ancestors(self) -> Iterator[ForestNode]:
        """The nodes above, nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def below(self) -> Iterator[ForestNode]:
        """The node and all its descendants, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children.values()))


Prefer = Callable[[ForestNode], bool]


class Forest:
    """Trees of filters under one imaginary root."""

    def __init__(self, tests: Tests | None = None, *, lazy: bool = False) -> None:
        """An empty forest that counts its comparisons in `tests`."""
        self.tests = tests or Tests()
        self.lazy = lazy
        self.top = ForestNode(EVERYTHING)
        """the imaginary root, which is no filter of the forest"""
        self.nodes: dict[Filter, ForestNode] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self.nodes)

    def roots(self) -> list[Filter]:
        """The minimal cover."""
        return list(self.top.children)

    def is_root(self, node: ForestNode) -> bool:
        """Does nothing cover it?"""
        return node.parent is self.top

    def add(self, filter: Filter, prefer: Prefer | None = None) -> ForestNode:
        """The node of a filter, made and placed if it is new; covering nodes that are preferred are tried first."""
        node = self.nodes.get(filter)
        if node is None:
            self._arrivals += 1
            node = self.nodes[filter] = ForestNode(filter, self._arrivals)
            self.place(node, self.top, prefer)
        return node

    def remove(self, filter: Filter) -> None:
        """Forget a filter; its children are placed anew below its parent. KeyError if it is not there."""
        node = self.nodes.pop(filter)
        parent = node.parent
        assert parent is not None
        children = list(node.children.values())
        for child in children:
            self.detach(child)
        self.detach(node)
        if self.lazy and parent is not self.top:
            for child in children:
                self.attach(child, parent)
        else:
            self._adopt(children, parent)

    def _adopt(self, children: list[ForestNode], parent: ForestNode) -> None:
        """Place the children of a removed node below its parent.

        They cover none of its former siblings, since it did not, and if pure they do not cover each other either.
        """
        siblings = list(parent.children.values())
        for child in children:
            larger = next((sibling for sibling in siblings if self.above(sibling, child)), None)
            if larger is not None:
                self.place(child, larger)
            elif self.lazy:
                self.place(child, parent, among=[c for c in children if c.parent is parent])
            else:
                self.attach(child, parent)

    def place(
        self,
        node: ForestNode,
        under: ForestNode,
        prefer: Prefer | None = None,
        *,
        among: Iterable[ForestNode] | None = None,
    ) -> None:
        """Hang a node, with all that is below it, as deep below another as the first covers that are met lead.

        Of the children of `under`, only those `among` some need to be compared, if that is known.
        """
        children = list(under.children.values() if among is None else among)
        while True:
            if prefer is not None:
                children.sort(key=lambda child: not prefer(child))
            larger = next((child for child in children if self.above(child, node)), None)
            if larger is None:
                break
            under, children = larger, list(larger.children.values())
        smaller = [child for child in children if self.tests.covers(node.filter, child.filter)]
        for child in smaller:
            self.detach(child)
        with_children = bool(node.children)
        self.attach(node, under)
        for child in smaller:
            if with_children:
                self.place(child, node)  # one of its new siblings may cover it
            else:
                self.attach(child, node)

    def above(self, larger: ForestNode, smaller: ForestNode) -> bool:
        """Does one node cover the other? Of two that mean the same, the older one does."""
        covers = self.tests.covers
        return covers(larger.filter, smaller.filter) and (
            larger.number < smaller.number or not covers(smaller.filter, larger.filter)
        )

    def attach(self, node: ForestNode, parent: ForestNode) -> None:
        """Make a node the child of another."""
        node.parent = parent
        parent.children[node.filter] = node

    def detach(self, node: ForestNode) -> None:
        """Take a node, with all that is below it, out of its place."""
        assert node.parent is not None
        del node.parent.children[node.filter]
        node.parent = None

    def covering(self, filter: Filter) -> list[Filter]:
        """The filters that cover a given one: only below a cover can there be others."""
        found: list[Filter] = []
        todo = [self.top]
        while todo:
            some = [c for c in todo.pop().children.values() if self.tests.covers(c.filter, filter)]
            found += [node.filter for node in some]
            todo += some
        return found

    def covered(self, filter: Filter) -> list[Filter]:
        """The filters that a given one covers: with one, all that is below it."""
        found: list[Filter] = []
        todo = [self.top]
        while todo:
            for child in todo.pop().children.values():
                if self.tests.covers(filter, child.filter):
                    found += [node.filter for node in child.below()]
                else:
                    todo.append(child)
        return found

    def overlapping(self, filter: Filter) -> list[Filter]:
        """The filters that overlap a given one: without it, none below."""
        found: list[Filter] = []
        todo = [self.top]
        while todo:
            some = [c for c in todo.pop().children.values() if self.tests.overlaps(c.filter, filter)]
            found += [node.filter for node in some]
            todo += some
        return found
