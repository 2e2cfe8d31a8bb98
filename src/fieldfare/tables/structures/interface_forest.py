"""`InterfaceForest`: a forest in which each node knows which interfaces are used below it.

With that index, whatever concerns one interface (its covers of a filter, all of its filters) is found without looking
at the subtrees of others, and an event skips those whose interfaces are found already. A new filter is placed below
covers that carry its own interface, if there are any (*balancing*): so the filters of one interface keep together.

The index counts how often an interface occurs below a node, since a mere set could not tell when the last one has gone.
Leaves need none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Generic

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Tests
from fieldfare.tables.structures.forest import Forest, ForestNode


class InterfaceForest(Forest, Generic[Interface]):
    """A forest over filters whose interfaces are kept by a table. The table says when they change."""

    def __init__(
        self, interfaces: Mapping[Filter, AbstractSet[Interface]], tests: Tests | None = None, *, lazy: bool = False
    ) -> None:
        """An empty forest."""
        super().__init__(tests, lazy=lazy)
        self.interfaces = interfaces
        self.below: dict[ForestNode, dict[Interface, int]] = {}
        """how often each interface occurs below a node; nodes with nothing below are left out"""

    def attach(self, node: ForestNode, parent: ForestNode) -> None:
        """Make a node the child of another."""
        super().attach(node, parent)
        for interface, times in self._counts(node).items():
            self.count(node, interface, times)

    def detach(self, node: ForestNode) -> None:
        """Take a node, with all that is below it, out of its place."""
        for interface, times in self._counts(node).items():
            self.count(node, interface, -times)
        super().detach(node)

    def count(self, node: ForestNode, interface: Interface, times: int) -> None:
        """Tell those above a node that an interface occurs so many times more."""
        for above in node.ancestors():
            counts = self.below.setdefault(above, {})
            counts[interface] = counts.get(interface, 0) + times
            if not counts[interface]:
                del counts[interface]
                if not counts:
                    del self.below[above]

    def _counts(self, node: ForestNode) -> dict[Interface, int]:
        """How often each interface occurs at a node or below it."""
        counts = dict(self.below.get(node, {}))
        for interface in self.interfaces[node.filter]:
            counts[interface] = counts.get(interface, 0) + 1
        return counts

    def carries(self, node: ForestNode, interface: Interface) -> bool:
        """Does an interface occur at a node or below it?"""
        return interface in self.interfaces[node.filter] or interface in self.below.get(node, ())

    def carried(self, node: ForestNode) -> AbstractSet[Interface]:
        """The interfaces that occur at a node or below it."""
        own = self.interfaces[node.filter]
        below = self.below.get(node)
        return own if below is None else own | below.keys()

    def settled(self, node: ForestNode, found: AbstractSet[Interface]) -> bool:
        """Are the interfaces that occur at a node or below it all among those found?"""
        return self.interfaces[node.filter] <= found and self.below.get(node, {}).keys() <= found

    def carrying(self, interface: Interface, start: ForestNode | None = None) -> Iterator[ForestNode]:
        """The nodes of an interface, at or below a node or anywhere, parents first."""
        todo = [start] if start is not None else list(self.top.children.values())
        while todo:
            node = todo.pop()
            if interface in self.interfaces[node.filter]:
                yield node
            if interface in self.below.get(node, ()):
                todo += [child for child in node.children.values() if self.carries(child, interface)]
