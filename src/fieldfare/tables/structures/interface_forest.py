"""`InterfaceForest`: a forest in which each node knows the interfaces below.

With the index of interfaces, questions about a single interface (its covers of a filter, all its filters) skip the
subtrees of others, and an event skips subtrees whose interfaces are all found. A new filter is placed below covers with
its own interface, if there are any (*balancing*): so the filters of an interface stay together.

The index counts how often an interface occurs below a node, because a mere set could not tell when the last occurrence
has gone. Leaves need no counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Generic

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Tests
from fieldfare.tables.structures.forest import Forest, ForestNode


class InterfaceForest(Forest, Generic[Interface]):
    """A forest over filters whose interfaces a table keeps. The table reports each change."""

    def __init__(
        self, interfaces: Mapping[Filter, AbstractSet[Interface]], tests: Tests | None = None, *, lazy: bool = False
    ) -> None:
        super().__init__(tests, lazy=lazy)
        self.interfaces = interfaces
        self.below: dict[ForestNode, dict[Interface, int]] = {}
        """the number of occurrences of each interface below a node; nodes without a subtree are left out"""

    def attach(self, node: ForestNode, parent: ForestNode) -> None:
        """Make a node the child of another, and add its interfaces to the counts above."""
        super().attach(node, parent)
        for interface, times in self._counts(node).items():
            self.count(node, interface, times)

    def detach(self, node: ForestNode) -> None:
        """Take a node with its subtree out, and subtract its interfaces from the counts above."""
        for interface, times in self._counts(node).items():
            self.count(node, interface, -times)
        super().detach(node)

    def count(self, node: ForestNode, interface: Interface, times: int) -> None:
        """Add a number of occurrences of an interface to the counts of all nodes above."""
        for above in node.ancestors():
            counts = self.below.setdefault(above, {})
            counts[interface] = counts.get(interface, 0) + times
            if not counts[interface]:
                del counts[interface]
                if not counts:
                    del self.below[above]

    def _counts(self, node: ForestNode) -> dict[Interface, int]:
        """Return the number of occurrences of each interface at a node and below."""
        counts = dict(self.below.get(node, {}))
        for interface in self.interfaces[node.filter]:
            counts[interface] = counts.get(interface, 0) + 1
        return counts

    def carries(self, node: ForestNode, interface: Interface) -> bool:
        """Tell whether an interface occurs at a node or below."""
        return interface in self.interfaces[node.filter] or interface in self.below.get(node, ())

    def carried(self, node: ForestNode) -> AbstractSet[Interface]:
        """Return the interfaces at a node and below."""
        own = self.interfaces[node.filter]
        below = self.below.get(node)
        return own if below is None else own | below.keys()

    def all_found(self, node: ForestNode, found: AbstractSet[Interface]) -> bool:
        """Tell whether all interfaces at a node and below are among the found interfaces."""
        return self.interfaces[node.filter] <= found and self.below.get(node, {}).keys() <= found

    def carrying(self, interface: Interface, start: ForestNode | None = None) -> Iterator[ForestNode]:
        """Iterate over the nodes of an interface, in a subtree or anywhere, parents first."""
        todo = [start] if start is not None else list(self.top.children.values())
        while todo:
            node = todo.pop()
            if interface in self.interfaces[node.filter]:
                yield node
            if interface in self.below.get(node, ()):
                todo += [child for child in node.children.values() if self.carries(child, interface)]
