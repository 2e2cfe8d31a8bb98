"""`IndexedTable`: a routing table that walks no graph. It asks the engine, and remembers two witnesses a filter.

What a neighbour j must know is the minimal cover of what others than j want. So j need not hear of a filter f exactly
if some cover of f came from elsewhere than from j alone. Whether that is so for every neighbour takes two *witnesses*
at most: a cover of f and, if it came from one neighbour only, another cover that did not come from that neighbour only.
A filter without witnesses is a root; one with a single witness, from neighbour j only, must be told to j; one with both
is hidden, and stays so until a witness goes or changes its interfaces. Only then are new witnesses looked for.

Witnesses are found by the engine's index over the *exposed* filters (all that are not hidden), which are few. Each
filter being witness to two others on average, a change costs a few look-ups, however many filters there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final, Generic, TypeAlias

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.tables.base import FilterIndex, Interface, MakeIndex, Table, Towards, satisfiable

_FEW: Final = 32
"""filters of one interface that are compared one by one; beyond, they get an index. (A part of a universe is free.)"""

Watch: TypeAlias = Callable[[Filter, Interface, bool], None]
"""is told of every pair that comes (True) or goes"""


@dataclass(eq=False, slots=True)
class _Entry(Generic[Interface]):
    """A filter, where it came from, and who testifies that it need not be told."""

    filter: Filter
    order: int
    """of arrival"""
    interfaces: set[Interface] = field(default_factory=set)
    witnesses: tuple[_Entry[Interface], ...] = ()
    testified: dict[Filter, _Entry[Interface]] = field(default_factory=dict)
    """the entries that it is a witness to"""


class IndexedTable(Table[Interface]):
    """Filters and their interfaces on the engine's index; the same answers as the poset, at any size."""

    def __init__(
        self,
        neighbours: Iterable[Interface] = (),
        *,
        towards: Towards[Interface] | None = None,
        redundant: bool = False,
        index: MakeIndex = Index,
        watch: Watch[Interface] | None = None,
    ) -> None:
        """An empty table; `index` makes what it asks, an `Index` or a part of a `Universe`."""
        super().__init__(neighbours, towards=towards)
        self.redundant = redundant
        self._index = index
        self._watch = watch
        self._few = _FEW if index is Index else 0
        self._entries: dict[Filter, _Entry[Interface]] = {}
        self._arrivals = 0
        self._all = index()
        self._exposed = index()
        self._roots: dict[Filter, None] = {}
        self._own: dict[Interface, dict[Filter, None]] = {}
        """the filters of each interface"""
        self._own_index: dict[Interface, FilterIndex] = {}

    # Pairs

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair."""
        return self.add_many([(filter, interface)]) == 1

    def add_many(self, pairs: Iterable[tuple[Filter, Interface]]) -> int:
        """Store many pairs; says how many of them changed something."""
        fresh: dict[Filter, _Entry[Interface]] = {}
        grown: list[_Entry[Interface]] = []
        changes = 0
        for filter, interface in pairs:
            if not self._is_news(satisfiable(filter), interface):
                continue
            changes += 1
            for other in [] if self.redundant else self._own_covered(filter, interface):
                self._leave(other, interface, fresh)
            entry = self._entries.get(filter)
            if entry is None:
                self._arrivals += 1
                entry = self._entries[filter] = fresh[filter] = _Entry(filter, self._arrivals)
            before = self._only(entry)
            entry.interfaces.add(interface)
            self._keep_own(filter, interface)
            if before != self._only(entry) and filter not in fresh:
                grown.append(entry)
        self._all.add_many((filter, filter) for filter in fresh)
        for entry in fresh.values():
            self._find_witnesses(entry)
        for entry in grown:
            if entry.interfaces and self._only(entry) is None:
                self._suffice(entry)
            if entry.interfaces and entry.filter in self._exposed:
                self._testify(entry)
        return changes

    def _is_news(self, filter: Filter, interface: Interface) -> bool:
        own = self._own.get(interface, {})
        return not own or (filter not in own and (self.redundant or not self._own_covering(filter, interface)))

    def _leave(self, filter: Filter, interface: Interface, fresh: dict[Filter, _Entry[Interface]]) -> None:
        """Forget a pair whose filter may not have come to the indexes yet."""
        entry = fresh.get(filter)
        if entry is None:
            self.remove(filter, interface)
            return
        entry.interfaces.remove(interface)
        self._forget_own(filter, interface)
        if not entry.interfaces:
            del self._entries[filter], fresh[filter]

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair."""
        entry = self._entries.get(filter)
        if entry is None or interface not in entry.interfaces:
            return False
        before = self._only(entry)
        entry.interfaces.remove(interface)
        self._forget_own(filter, interface)
        if not entry.interfaces:
            del self._entries[filter]
            self._all.remove(filter)
            self._witnessed_by(entry, ())
        if not entry.interfaces or before != self._only(entry):
            for other in list(entry.testified.values()):
                self._find_witnesses(other)
        return True

    def filters(self) -> Iterator[Filter]:
        """All stored filters."""
        return iter(list(self._entries))

    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Where a filter came from."""
        entry = self._entries.get(filter)
        return frozenset() if entry is None else entry.interfaces

    def drop(self, interface: Interface) -> list[Filter]:
        """Forget all pairs of an interface."""
        gone = self._sorted(self._own.get(interface, ()))
        for filter in gone:
            self.remove(filter, interface)
        return gone

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, filter: object) -> bool:
        return filter in self._entries

    # Questions

    def roots(self) -> list[Filter]:
        """The minimal cover: the filters without witnesses."""
        return self._sorted(self._roots)

    def forwards(self, filter: Filter) -> frozenset[Interface]:
        """The neighbours that must know a filter."""
        entry = self._entries.get(filter)
        if entry is None or len(entry.witnesses) == 2:
            return frozenset()
        if not entry.witnesses:
            return self._told(filter)
        only = self._only(entry.witnesses[0])
        return frozenset() if only is None else self._told(filter) & only

    def beneath(self, filter: Filter) -> list[Filter]:
        """The filters that this one is a witness to: for others nothing changes when it goes."""
        entry = self._entries.get(filter)
        return [] if entry is None else self._sorted(entry.testified)

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """The interfaces that want an event."""
        return set().union(*(self._entries[filter].interfaces for filter in self._all.match(event)))

    def covering(self, filter: Filter) -> list[Filter]:
        """The stored filters that cover a given one."""
        return self._sorted(self._all.covering(filter))

    def covered(self, filter: Filter) -> list[Filter]:
        """The stored filters that a given one covers."""
        return self._sorted(self._all.covered(filter))

    def overlapping(self, filter: Filter) -> list[Filter]:
        """The stored filters that overlap a given one."""
        return self._sorted(self._all.overlapping(filter))

    def _sorted(self, filters: Iterable[Filter]) -> list[Filter]:
        return sorted(filters, key=lambda filter: self._entries[filter].order)

    # Witnesses

    def _only(self, entry: _Entry[Interface]) -> frozenset[Interface] | None:
        """The one neighbour that a filter came from, as a set; None if it also came from elsewhere."""
        if len(entry.interfaces) != 1 or not entry.interfaces <= self.neighbours:
            return None
        return frozenset(entry.interfaces)

    def _find_witnesses(self, entry: _Entry[Interface]) -> None:
        """Look for covers that hide a filter: first among the exposed ones, then, if those leave doubt, among all.

        What is covered at all is covered by a root, hence by an exposed filter.
        """
        found = self._pick(entry, self._exposed)
        if len(found) == 1 and self._only(found[0]) is not None:
            found = self._pick(entry, self._all)
        self._witnessed_by(entry, found)
        if entry.filter in self._exposed:
            self._testify(entry)

    def _pick(self, entry: _Entry[Interface], index: FilterIndex) -> tuple[_Entry[Interface], ...]:
        """A cover that is enough alone, else two that are enough together, else one, else none."""
        by_only: dict[frozenset[Interface], _Entry[Interface]] = {}
        for filter in index.covering(entry.filter):
            cover = self._entries[filter]
            if cover is entry or (cover.order > entry.order and entry.filter.covers(filter)):
                continue  # of two filters that mean the same, the older is the cover
            only = self._only(cover)
            if only is None:
                return (cover,)
            by_only.setdefault(only, cover)
            if len(by_only) == 2:
                break
        return tuple(by_only.values())

    def _testify(self, entry: _Entry[Interface]) -> None:
        """An exposed filter is new, or came from elsewhere too: let it be witness to the exposed filters it covers.

        What a hidden filter covers is hidden by the same witnesses: only exposed ones need to be asked.
        """
        only = self._only(entry)
        for filter in self._exposed.covered(entry.filter):
            other = self._entries[filter]
            means_the_same = entry.witnesses and other.order < entry.order and filter.covers(entry.filter)
            if other is entry or means_the_same:
                continue
            if only is None or not other.witnesses:
                self._witnessed_by(other, (entry,))
            elif self._only(other.witnesses[0]) != only:
                self._witnessed_by(other, (other.witnesses[0], entry))

    def _suffice(self, entry: _Entry[Interface]) -> None:
        """A filter came from elsewhere too, so whatever it is one of two witnesses to needs the other no more."""
        for other in list(entry.testified.values()):
            if len(other.witnesses) == 2:
                self._witnessed_by(other, (entry,))

    def _witnessed_by(self, entry: _Entry[Interface], witnesses: tuple[_Entry[Interface], ...]) -> None:
        filter = entry.filter
        for old in entry.witnesses:
            del old.testified[filter]
        entry.witnesses = witnesses
        for new in witnesses:
            new.testified[filter] = entry
        if entry.interfaces and not witnesses:
            self._roots[filter] = None
        else:
            self._roots.pop(filter, None)
        hidden = len(witnesses) == 2 or (len(witnesses) == 1 and self._only(witnesses[0]) is None)
        exposed = bool(entry.interfaces) and not hidden
        if exposed and filter not in self._exposed:
            self._exposed.add(filter, filter)
        elif not exposed and filter in self._exposed:
            self._exposed.remove(filter)

    # The filters of one interface

    def _own_covering(self, filter: Filter, interface: Interface) -> bool:
        index = self._own_index.get(interface)
        if index is not None:
            return bool(index.covering(filter))
        return any(self.tests.covers(other, filter) for other in self._own[interface])

    def _own_covered(self, filter: Filter, interface: Interface) -> list[Filter]:
        index = self._own_index.get(interface)
        if index is not None:
            return self._sorted(index.covered(filter))
        return [other for other in self._own.get(interface, ()) if self.tests.covers(filter, other)]

    def _keep_own(self, filter: Filter, interface: Interface) -> None:
        if self._watch is not None:
            self._watch(filter, interface, True)
        own = self._own.setdefault(interface, {})
        own[filter] = None
        if interface in self._own_index:
            self._own_index[interface].add(filter, filter)
        elif not self.redundant and len(own) > self._few:
            self._own_index[interface] = self._index()
            self._own_index[interface].add_many((other, other) for other in own)

    def _forget_own(self, filter: Filter, interface: Interface) -> None:
        if self._watch is not None:
            self._watch(filter, interface, False)
        own = self._own[interface]
        del own[filter]
        if interface in self._own_index:
            self._own_index[interface].remove(filter)
        if not own:
            del self._own[interface]
            self._own_index.pop(interface, None)
