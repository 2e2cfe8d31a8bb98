"""`Forest`: filters as trees, a parent covering its children. It knows nothing of interfaces.

Each filter has one parent at most, and that parent need not be its closest cover: only some of the covering relations
are stored, which makes changes cheap. Children of one node never cover each other (*sibling purity*), hence the tree
roots are the minimal cover, whatever order the filters came in.

With `lazy`, removing a filter that is not a tree root hands its children to its parent without comparing them: below
the roots purity is lost, but the roots, and all that is found from them, stay right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fieldfare.filters.filter import EVERYTHING, Filter
from fieldfare.tables.base import Tests


@dataclass(eq=False, slots=True)
class Node:
    """A filter and its place. The children are a dict for its order and its constant time."""

    filter: Filter
    parent: Node | None = None
    children: dict[Filter, Node] = field(default_factory=dict)

    def ancestors(self) -> Iterator[Node]:
        """The nodes above, nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def below(self) -> Iterator[Node]:
        """The node and all its descendants, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children.values()))


Prefer = Callable[[Node], bool]


class Forest:
    """Trees of filters under one imaginary root."""

    def __init__(self, tests: Tests | None = None, *, lazy: bool = False) -> None:
        """An empty forest that counts its comparisons in `tests`."""
        self.tests = tests or Tests()
        self.lazy = lazy
        self.top = Node(EVERYTHING)
        """the imaginary root, which is no filter of the forest"""
        self.nodes: dict[Filter, Node] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def roots(self) -> list[Filter]:
        """The minimal cover."""
        return list(self.top.children)

    def is_root(self, node: Node) -> bool:
        """Does nothing cover it?"""
        return node.parent is self.top

    def add(self, filter: Filter, prefer: Prefer | None = None) -> Node:
        """The node of a filter, made and placed if it is new; covering nodes that are preferred are tried first."""
        node = self.nodes.get(filter)
        if node is None:
            node = self.nodes[filter] = Node(filter)
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
        for child in children:
            if self.lazy and parent is not self.top:
                self.attach(child, parent)
            else:
                self.place(child, parent)

    def place(self, node: Node, under: Node, prefer: Prefer | None = None) -> None:
        """Hang a node, with all that is below it, as deep below another as the first covers that are met lead."""
        covers = self.tests.covers
        while True:
            children = list(under.children.values())
            if prefer is not None:
                children.sort(key=lambda child: not prefer(child))
            larger = next((child for child in children if covers(child.filter, node.filter)), None)
            if larger is None:
                break
            under = larger
        smaller = [child for child in children if covers(node.filter, child.filter)]
        for child in smaller:
            self.detach(child)
        with_children = bool(node.children)
        self.attach(node, under)
        for child in smaller:
            if with_children:
                self.place(child, node)  # one of its new siblings may cover it
            else:
                self.attach(child, node)

    def attach(self, node: Node, parent: Node) -> None:
        """Make a node the child of another."""
        node.parent = parent
        parent.children[node.filter] = node

    def detach(self, node: Node) -> None:
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
