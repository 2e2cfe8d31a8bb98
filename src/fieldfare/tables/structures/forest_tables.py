"""Routing tables on forests: fewer covering relations than in a poset, hence far fewer comparisons.

Three tables, each built on the previous. `PosetForest` keeps every pair. `BalancedForest` also keeps an index of
interfaces, for questions about a single interface. `NonRedundantForest` forgets pairs below another filter of the same
interface, so its content equals the poset's.

A forest does not have all covering relations, so a neighbour may have a cover of a filter in another tree. To find such
a cover, the other trees must be searched; `forwards` and `beneath` do so only where the answer can depend on the
result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, TypeAlias, get_args

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Table, Towards, satisfiable
from fieldfare.tables.structures.forest import Forest, ForestNode
from fieldfare.tables.structures.graph_match import interested
from fieldfare.tables.structures.interface_forest import InterfaceForest

Elimination: TypeAlias = Literal["add", "remove"]
"""when covered pairs are removed: on arrival of the larger filter, or on its removal"""


class PosetForest(Table[Interface]):
    """The poset-derived forest, which keeps all pairs: for local clients, whose filters come and go independently.

    >>> from fieldfare.filters import parse
    >>> table: PosetForest[str] = PosetForest()
    >>> table.add(parse("price < 10"), "ana"), table.add(parse("price < 5"), "ana"), table.roots()
    (True, True, [parse('price < 10')])
    """

    redundant = True
    exact = True

    def __init__(
        self,
        neighbours: Iterable[Interface] = (),
        *,
        towards: Towards[Interface] | None = None,
        lazy: bool = False,
    ) -> None:
        """Make an empty table; with `lazy`, a removal compares filters only if a root goes."""
        super().__init__(neighbours, towards=towards)
        self._interfaces: dict[Filter, set[Interface]] = {}
        self._pairs: Counter[Interface] = Counter()
        self.forest = self._plant(lazy)

    def _plant(self, lazy: bool) -> Forest:
        return Forest(self.tests, lazy=lazy)

    # Pairs

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair; the filter is placed in the forest if new."""
        if interface in self.interfaces(satisfiable(filter)):
            return False
        self._keep(filter, interface)
        return True

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair; a filter without interfaces leaves the forest."""
        if interface not in self.interfaces(filter):
            return False
        self._forget(filter, interface)
        return True

    def _keep(self, filter: Filter, interface: Interface) -> None:
        self._pairs[interface] += 1
        self._interfaces.setdefault(filter, set()).add(interface)
        self.forest.add(filter)

    def _forget(self, filter: Filter, interface: Interface) -> None:
        self._pairs[interface] -= 1
        if not self._pairs[interface]:
            del self._pairs[interface]
        them = self._interfaces[filter]
        if len(them) == 1:
            self.forest.remove(filter)
            del self._interfaces[filter]
        else:
            them.remove(interface)

    def filters(self) -> Iterator[Filter]:
        """Iterate over a copy, so that the table may change meanwhile."""
        return iter(list(self._interfaces))

    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Return the interfaces of a filter; an empty set for a filter that is not stored."""
        return self._interfaces.get(filter, frozenset())

    def __len__(self) -> int:
        return len(self._interfaces)

    # The neighbours of a filter

    def forwards(self, filter: Filter) -> frozenset[Interface]:
        """Return the neighbours that must know a filter: all covers, if any, came from the neighbour alone.

        Assumption: the neighbours that may learn a covered filter may learn its cover. The assumption holds for
        overlapping advertisements, and where `overlaps` errs towards True nothing is lost.
        """
        node = self.forest.nodes.get(filter)
        if node is None:
            return frozenset()
        if self.forest.is_root(node):
            return self._told(filter)
        above = [self._only(cover) for cover in node.ancestors() if cover is not self.forest.top]
        only = frozenset.intersection(*above)
        told = only and self._told(filter) & only
        return frozenset() if told and self.exact and self._hidden(node, told) else told

    def _only(self, node: ForestNode) -> frozenset[Interface]:
        """Return the interface of a node, if there is only a single interface; else an empty set."""
        them = self._interfaces[node.filter]
        return frozenset(them) if len(them) == 1 else frozenset()

    def _hidden(self, node: ForestNode, only: frozenset[Interface]) -> bool:
        """Tell whether a cover in another tree came from elsewhere than the single interface of all covers above."""
        above = set(node.ancestors())
        todo = list(self.forest.top.children.values())
        while todo:
            other = todo.pop()
            if other in above:
                todo.extend(other.children.values())
            elif other is not node and not self._all_found(other, only) and self.forest.above(other, node):
                if self._interfaces[other.filter] != only:
                    return True
                todo.extend(other.children.values())
        return False

    def beneath(self, filter: Filter) -> list[Filter]:
        """Return the filters below, in any tree, whose other covers all came from a single neighbour.

        The result also suffices if all filters of an interface go, each with the filters beneath.
        """
        node = self.forest.nodes.get(filter)
        told = self.forwards(filter)
        if node is None or not (told or self.forest.is_root(node)):
            return []
        # The interfaces that leave with the filter may have redundant pairs below, too.
        leaving: AbstractSet[Interface] = self._interfaces[filter] if self._keeps_covered else frozenset()
        top, above = self.forest.top, set(node.ancestors())
        found: list[Filter] = []
        # A place to look, whether the place is below the filter, and the neighbours of all covers on the way.
        todo = [(top, False, told) if told else (node, True, told)]
        while todo:
            parent, covered, whom = todo.pop()
            for child in parent.children.values():
                if child is node:
                    todo.append((child, True, whom))
                    continue
                # The filter covers none of its own covers, and no root.
                asked = parent is not top and child not in above
                below = covered or (asked and self.tests.covers(filter, child.filter))
                if below:
                    found.append(child.filter)
                others = self._interfaces[child.filter] - leaving
                if not others:
                    todo.append((child, below, whom))
                elif len(others) == 1 and others <= whom:
                    todo.append((child, below, frozenset(others)))
        return self._in_order(found)

    @property
    def _keeps_covered(self) -> bool:
        """Tell whether a filter may be stored below another filter of the same interface."""
        return self.redundant

    # Events

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """Return the interfaces with a filter that the event matches."""
        return self._match(event)

    def match_within(self, event: Mapping[str, object], tests: int) -> set[Interface]:
        """Return the matching interfaces, and perhaps others, after a limited number of filter tests."""
        return self._match(event, tests)

    def _match(self, event: Mapping[str, object], budget: int | None = None) -> set[Interface]:
        return interested(
            self.forest.top.children.values(),
            event,
            self.tests,
            interfaces=self.interfaces,
            everyone=len(self._pairs),
            carried=self._carried,
            all_found=self._all_found,
            budget=budget,
        )

    def _carried(self, node: ForestNode) -> AbstractSet[Interface]:
        """Return the interfaces of a node and of its subtree."""
        return set().union(*(self._interfaces[below.filter] for below in node.below()))

    def _all_found(self, node: ForestNode, found: AbstractSet[Interface]) -> bool:
        """Tell whether the interfaces of a node and its subtree are known to be found; a plain forest never knows."""
        return False

    # Covers

    def roots(self) -> list[Filter]:
        """Return the minimal cover, in the order of arrival."""
        return self._in_order(self.forest.roots())

    def covering(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that cover a given filter, in the order of arrival."""
        return self._in_order(self.forest.covering(filter))

    def covered(self, filter: Filter) -> list[Filter]:
        """Return the stored filters which a given filter covers, in the order of arrival."""
        return self._in_order(self.forest.covered(filter))

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that overlap a given filter, in the order of arrival."""
        return self._in_order(self.forest.overlapping(filter))

    def _in_order(self, filters: Iterable[Filter]) -> list[Filter]:
        return sorted(filters, key=lambda filter: self.forest.nodes[filter].number)


class BalancedForest(PosetForest[Interface]):
    """The balanced forest, which keeps all pairs and finds those of an interface quickly."""

    forest: InterfaceForest[Interface]

    def _plant(self, lazy: bool) -> InterfaceForest[Interface]:
        return InterfaceForest(self._interfaces, self.tests, lazy=lazy)

    def _keep(self, filter: Filter, interface: Interface) -> None:
        forest = self.forest
        known = interface in self._pairs
        self._pairs[interface] += 1
        them = self._interfaces.setdefault(filter, set())
        them.add(interface)
        if len(them) > 1:
            forest.count(forest.nodes[filter], interface, 1)
        else:
            forest.add(filter, (lambda node: forest.carries(node, interface)) if known else None)

    def _forget(self, filter: Filter, interface: Interface) -> None:
        if len(self._interfaces[filter]) > 1:
            self.forest.count(self.forest.nodes[filter], interface, -1)
        super()._forget(filter, interface)

    def drop(self, interface: Interface) -> list[Filter]:
        """Forget all pairs of an interface and return the filters of these pairs."""
        gone = [node.filter for node in self.forest.carrying(interface)]
        ordered = self._in_order(gone)
        self._forget_all(gone, interface)
        return ordered

    def _forget_all(self, filters: Sequence[Filter], interface: Interface) -> None:
        """Forget pairs that are listed parents first, from the bottom: so no filter is moved that goes next."""
        for filter in reversed(filters):
            self._forget(filter, interface)

    def _carried(self, node: ForestNode) -> AbstractSet[Interface]:
        return self.forest.carried(node)

    def _all_found(self, node: ForestNode, found: AbstractSet[Interface]) -> bool:
        return self.forest.all_found(node, found)


class NonRedundantForest(BalancedForest[Interface]):
    """The non-redundant forest, for neighbours: the filters of an interface do not cover each other.

    Some comparisons can be saved. A `trusted` neighbour never sends a filter below another of its filters. With
    `eliminate="remove"`, covered pairs stay until the larger filter goes, and go with it: the table is larger, its
    answers to `roots`, `forwards` and `match` are the same. If not `exact`, `forwards` looks only at the tree of a
    filter, and so may also name a neighbour with a cover in another tree; `forwards` never names too few neighbours.
    """

    redundant = False

    def __init__(
        self,
        neighbours: Iterable[Interface] = (),
        *,
        towards: Towards[Interface] | None = None,
        lazy: bool = False,
        eliminate: Elimination = "add",
        trusted: bool = False,
        exact: bool = True,
    ) -> None:
        if eliminate not in get_args(Elimination):
            raise ValueError(f"eliminate is 'add' or 'remove', not {eliminate!r}")
        super().__init__(neighbours, towards=towards, lazy=lazy)
        self.eliminate: Elimination = eliminate
        self.trusted = trusted
        self.exact = exact

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair, unless a filter of the interface covers the new filter."""
        if interface in self.interfaces(satisfiable(filter)) or (not self.trusted and self._has(filter, interface)):
            return False
        known = interface in self._pairs
        self._keep(filter, interface)
        if known and self.eliminate == "add":
            self._forget_all(self._covered_of(filter, interface), interface)
        return True

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair, and with late elimination also the covered pairs."""
        if interface not in self.interfaces(filter):
            return False
        if self.eliminate == "remove":
            self._forget_all(self._covered_of(filter, interface), interface)
        self._forget(filter, interface)
        return True

    def _has(self, filter: Filter, interface: Interface) -> bool:
        """Tell whether an interface has a cover of a filter."""
        todo = [self.forest.top]
        while todo:
            for child in todo.pop().children.values():
                if not self.forest.carries(child, interface):
                    continue
                if child.filter == filter or self.tests.covers(child.filter, filter):
                    if interface in self._interfaces[child.filter]:
                        return True
                    todo.append(child)
        return False

    def _covered_of(self, filter: Filter, interface: Interface) -> list[Filter]:
        """Return the other filters of an interface below one of its filters, parents first."""
        found: list[Filter] = []
        todo = [self.forest.top]
        while todo:
            for child in todo.pop().children.values():
                if not self.forest.carries(child, interface):
                    continue
                if child.filter == filter or self.tests.covers(filter, child.filter):
                    found += [node.filter for node in self.forest.carrying(interface, child)]
                else:
                    todo.append(child)
        return [other for other in found if other != filter]

    @property
    def _keeps_covered(self) -> bool:
        return self.eliminate == "remove"
