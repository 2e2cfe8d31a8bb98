"""`Forest`: filters as trees, in which a parent covers its children. A forest knows nothing of interfaces.

Each filter has at most a single parent, which need not be its closest cover: a forest stores only some covering
relations, so changes are cheap. Children of a node never cover each other (*sibling purity*); hence the tree roots are
the minimal cover, in whatever order the filters came.

With `lazy`, the removal of an inner filter hands its children to its parent without comparisons. Below the roots purity
is lost, but the roots, and all results found from the roots, stay right.

Two filters may mean the same without being equal. Then the older filter counts as the larger: otherwise each could
demand to be the other's parent, and the root would depend on past moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fieldfare.filters.filter import EVERYTHING, Filter
from fieldfare.tables.base import Tests


@dataclass(eq=False, slots=True)
class ForestNode:
    """A filter in its tree. The children are a dict, for its order and its constant time."""

    filter: Filter
    number: int = 0
    """number of arrival"""
    parent: ForestNode | None = None
    children: dict[Filter, ForestNode] = field(default_factory=dict)

    def ancestors(self) -> Iterator[ForestNode]:
        """Iterate over the nodes above, nearest first."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def below(self) -> Iterator[ForestNode]:
        """Iterate over the node and all its descendants, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children.values()))


Prefer = Callable[[ForestNode], bool]


class Forest:
    """Trees of filters under a single imaginary root."""

    def __init__(self, tests: Tests | None = None, *, lazy: bool = False) -> None:
        """Make an empty forest that counts its comparisons in `tests`."""
        self.tests = tests or Tests()
        self.lazy = lazy
        self.top = ForestNode(EVERYTHING)
        """the imaginary root, which is no filter of the forest"""
        self.nodes: dict[Filter, ForestNode] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self.nodes)

    def roots(self) -> list[Filter]:
        """Return the minimal cover: the roots of all trees."""
        return list(self.top.children)

    def is_root(self, node: ForestNode) -> bool:
        """Tell whether no filter of the forest covers the node."""
        return node.parent is self.top

    def add(self, filter: Filter, prefer: Prefer | None = None) -> ForestNode:
        """Return the node of a filter, placed in the forest if new.

        Covering nodes for which `prefer` holds are tried first.
        """
        node = self.nodes.get(filter)
        if node is None:
            self._arrivals += 1
            node = self.nodes[filter] = ForestNode(filter, self._arrivals)
            self.place(node, self.top, prefer)
        return node

    def remove(self, filter: Filter) -> None:
        """Forget a filter and place its children below its parent. A filter that is not stored is a KeyError."""
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

        The children cover none of the removed node's siblings, because the removed node did not, and if the forest is
        pure the children do not cover each other.
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
        """Hang a node, with its subtree, below another node, as deep as the first covers met on the way lead.

        Pass `among` if only some children of `under` need a comparison.
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
                self.place(child, node)  # a new sibling may cover the child
            else:
                self.attach(child, node)

    def above(self, larger: ForestNode, smaller: ForestNode) -> bool:
        """Tell whether a node covers another; of two nodes with the same meaning, the older covers the younger."""
        covers = self.tests.covers
        return covers(larger.filter, smaller.filter) and (
            larger.number < smaller.number or not covers(smaller.filter, larger.filter)
        )

    def attach(self, node: ForestNode, parent: ForestNode) -> None:
        """Make a node the child of another."""
        node.parent = parent
        parent.children[node.filter] = node

    def detach(self, node: ForestNode) -> None:
        """Take a node, with its subtree, out of the forest."""
        assert node.parent is not None
        del node.parent.children[node.filter]
        node.parent = None

    def covering(self, filter: Filter) -> list[Filter]:
        """Return the filters that cover a given filter; the search goes on only below covers."""
        found: list[Filter] = []
        todo = [self.top]
        while todo:
            some = [c for c in todo.pop().children.values() if self.tests.covers(c.filter, filter)]
            found += [node.filter for node in some]
            todo += some
        return found

    def covered(self, filter: Filter) -> list[Filter]:
        """Return the filters which a given filter covers.

        Below a covered node all filters are covered without comparisons.
        """
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
        """Return the filters that overlap a given filter; the search goes on only below overlapping filters."""
        found: list[Filter] = []
        todo = [self.top]
        while todo:
            some = [c for c in todo.pop().children.values() if self.tests.overlaps(c.filter, filter)]
            found += [node.filter for node in some]
            todo += some
        return found
