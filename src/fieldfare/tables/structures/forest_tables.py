"""Routing tables on forests: fewer covering relations than in a poset, hence far fewer comparisons.

Three of them, each on top of the one before. `PosetForest` keeps every pair. `BalancedForest` also keeps an index of
interfaces, for all that concerns one interface. `NonRedundantForest` forgets pairs whose filter is covered by another
one of the same interface, so it keeps what the poset keeps.

A forest does not have all covering relations, so a neighbour may have a cover of a filter that is not above it in its
tree. To know, the other trees must be searched; `forwards` and `beneath` do so only where the answer can depend on it.
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
"""when pairs are looked for that a filter covers: when it comes, or not until it goes"""


class PosetForest(Table[Interface]):
    """The poset-derived forest: it keeps all pairs. For local clients, whose filters come and go independently.

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
        """An empty table; with `lazy`, a removal compares filters only if a root goes."""
        super().__init__(neighbours, towards=towards)
        self._interfaces: dict[Filter, set[Interface]] = {}
        self._pairs: Counter[Interface] = Counter()
        self.forest = self._plant(lazy)

    def _plant(self, lazy: bool) -> Forest:
        return Forest(self.tests, lazy=lazy)

    # Pairs

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair."""
        if interface in self.interfaces(satisfiable(filter)):
            return False
        self._keep(filter, interface)
        return True

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair."""
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
        """All stored filters."""
        return iter(list(self._interfaces))

    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Where a filter came from."""
        return self._interfaces.get(filter, frozenset())

    def __len__(self) -> int:
        return len(self._interfaces)

    # Whom to tell

    def forwards(self, filter: Filter) -> frozenset[Interface]:
        """The neighbours that must know a filter: all its covers came from them alone, if there are covers.

        It is taken for granted that a cover may be told to whom what it covers may be told. That holds for overlapping
        advertisements, and where `overlaps` says yes in error, there is nothing to lose.
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
        """The interface that a node came from, if it is only one."""
        them = self._interfaces[node.filter]
        return frozenset(them) if len(them) == 1 else frozenset()

    def _hidden(self, node: ForestNode, only: frozenset[Interface]) -> bool:
        """Is there a cover that came from elsewhere than this one interface, from which all came that are above?"""
        above = set(node.ancestors())
        todo = list(self.forest.top.children.values())
        while todo:
            other = todo.pop()
            if other in above:
                todo.extend(other.children.values())
            elif other is not node and not self._settled(other, only) and self.forest.above(other, node):
                if self._interfaces[other.filter] != only:
                    return True
                todo.extend(other.children.values())
        return False

    def beneath(self, filter: Filter) -> list[Filter]:
        """What is below it, in its tree or in others, if all other covers in the tree came from one neighbour alone.

        Enough also if all filters of an interface go, each with what is beneath it.
        """
        node = self.forest.nodes.get(filter)
        told = self.forwards(filter)
        if node is None or not (told or self.forest.is_root(node)):
            return []
        # Who leaves with the filter: redundant pairs below it may be theirs, too.
        leaving: AbstractSet[Interface] = self._interfaces[filter] if self._keeps_covered else frozenset()
        top, above = self.forest.top, set(node.ancestors())
        found: list[Filter] = []
        # Where to look, whether that is below the filter, and which neighbours all on the way came from.
        todo = [(top, False, told) if told else (node, True, told)]
        while todo:
            parent, covered, whom = todo.pop()
            for child in parent.children.values():
                if child is node:
                    todo.append((child, True, whom))
                    continue
                # It covers none of what covers it, and no root.
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
        """May a filter be stored below another one of the same interface?"""
        return self.redundant

    # Whom an event concerns

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """The interfaces that want an event."""
        return self._match(event)

    def match_within(self, event: Mapping[str, object], tests: int) -> set[Interface]:
        """The interfaces that want an event, and perhaps others, after so many tests of filters at most."""
        return self._match(event, tests)

    def _match(self, event: Mapping[str, object], budget: int | None = None) -> set[Interface]:
        return interested(
            self.forest.top.children.values(),
            event,
            self.tests,
            interfaces=self.interfaces,
            everyone=len(self._pairs),
            carried=self._carried,
            settled=self._settled,
            budget=budget,
        )

    def _carried(self, node: ForestNode) -> AbstractSet[Interface]:
        """The interfaces of a node and of all below."""
        return set().union(*(self._interfaces[below.filter] for below in node.below()))

    def _settled(self, node: ForestNode, found: AbstractSet[Interface]) -> bool:
        """Are they known to be among those found?"""
        return False

    # Covers

    def roots(self) -> list[Filter]:
        """The minimal cover."""
        return self._in_order(self.forest.roots())

    def covering(self, filter: Filter) -> list[Filter]:
        """The stored filters that cover a given one."""
        return self._in_order(self.forest.covering(filter))

    def covered(self, filter: Filter) -> list[Filter]:
        """The stored filters that a given one covers."""
        return self._in_order(self.forest.covered(filter))

    def overlapping(self, filter: Filter) -> list[Filter]:
        """The stored filters that overlap a given one."""
        return self._in_order(self.forest.overlapping(filter))

    def _in_order(self, filters: Iterable[Filter]) -> list[Filter]:
        return sorted(filters, key=lambda filter: self.forest.nodes[filter].number)


class BalancedForest(PosetForest[Interface]):
    """The balanced forest: it keeps all pairs, and finds those of one interface quickly."""

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
        """Forget all pairs of an interface; gives their filters."""
        gone = [node.filter for node in self.forest.carrying(interface)]
        ordered = self._in_order(gone)
        self._forget_all(gone, interface)
        return ordered

    def _forget_all(self, filters: Sequence[Filter], interface: Interface) -> None:
        """Forget pairs that are listed parents first, from below: so nothing is moved that goes next."""
        for filter in reversed(filters):
            self._forget(filter, interface)

    def _carried(self, node: ForestNode) -> AbstractSet[Interface]:
        return self.forest.carried(node)

    def _settled(self, node: ForestNode, found: AbstractSet[Interface]) -> bool:
        return self.forest.settled(node, found)


class NonRedundantForest(BalancedForest[Interface]):
    """The non-redundant forest: the filters of one interface do not cover each other. For neighbours.

    Some comparisons can be saved. A neighbour that is `trusted` never sends a filter that is covered by what it has.
    With `eliminate="remove"`, covered pairs stay until the larger filter goes, and go with it: the table is larger, its
    answers to `roots`, `forwards` and `match` are the same. If not `exact`, `forwards` looks only at the tree of a
    filter, and so may also name a neighbour that has a cover from another one; it names none too few.
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
        """An empty table."""
        if eliminate not in get_args(Elimination):
            raise ValueError(f"eliminate is 'add' or 'remove', not {eliminate!r}")
        super().__init__(neighbours, towards=towards, lazy=lazy)
        self.eliminate: Elimination = eliminate
        self.trusted = trusted
        self.exact = exact

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair."""
        if interface in self.interfaces(satisfiable(filter)) or (not self.trusted and self._has(filter, interface)):
            return False
        known = interface in self._pairs
        self._keep(filter, interface)
        if known and self.eliminate == "add":
            self._forget_all(self._covered_of(filter, interface), interface)
        return True

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair."""
        if interface not in self.interfaces(filter):
            return False
        if self.eliminate == "remove":
            self._forget_all(self._covered_of(filter, interface), interface)
        self._forget(filter, interface)
        return True

    def _has(self, filter: Filter, interface: Interface) -> bool:
        """Does an interface have a cover of a filter that it does not have?"""
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
        """The other filters of an interface that one of its filters covers, parents first."""
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
