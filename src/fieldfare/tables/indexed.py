"""`IndexedTable`: a routing table over the matching engine. The table keeps two witnesses a filter, and no graph.

A neighbour j must know the minimal cover of the filters of all others. So j need not know a filter f exactly if some
cover of f did not come from j alone. At most two *witnesses* answer the question for every neighbour: a cover of f and,
if the cover came from a single neighbour, another cover which did not come from the same neighbour alone. A filter
without witnesses is a root. A filter with a single witness, from neighbour j alone, goes to j. A filter with both is
hidden until a witness goes or changes its interfaces; only then does the table look for new witnesses.

Witnesses are found with an index over the *exposed* filters (all that are not hidden), which are few. On average each
filter is witness to two others, so a change costs a few look-ups, however many filters there are.
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
"""filters of an interface that are compared pairwise; with more, the interface gets an index (a shared index costs
nothing)"""

Watch: TypeAlias = Callable[[Filter, Interface, bool], None]
"""called with each pair that is added (True) or removed (False)"""


@dataclass(eq=False, slots=True)
class _Entry(Generic[Interface]):
    """A filter with its interfaces and its witnesses."""

    filter: Filter
    order: int
    """number of arrival"""
    interfaces: set[Interface] = field(default_factory=set)
    witnesses: tuple[_Entry[Interface], ...] = ()
    testified: dict[Filter, _Entry[Interface]] = field(default_factory=dict)
    """the entries with this entry as a witness"""


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
        """Make an empty table; `index` makes an empty `Index` or a part of a `SharedIndex`."""
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
        """Store a pair; for many pairs, `add_many` is faster."""
        return self.add_many([(filter, interface)]) == 1

    def add_many(self, pairs: Iterable[tuple[Filter, Interface]]) -> int:
        """Store many pairs, with a single update of the indexes; return the number of pairs that changed the table."""
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
        """Forget a pair whose filter may not be in the indexes yet."""
        entry = fresh.get(filter)
        if entry is None:
            self.remove(filter, interface)
            return
        entry.interfaces.remove(interface)
        self._forget_own(filter, interface)
        if not entry.interfaces:
            del self._entries[filter], fresh[filter]

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair, and look for new witnesses where the filter was a witness."""
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
        """Iterate over a copy, so that the table may change meanwhile."""
        return iter(list(self._entries))

    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Return the interfaces of a filter; an empty set for a filter that is not stored."""
        entry = self._entries.get(filter)
        return frozenset() if entry is None else entry.interfaces

    def drop(self, interface: Interface) -> list[Filter]:
        """Forget all pairs of an interface, in the order of arrival."""
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
        """Return the minimal cover: the filters without witnesses."""
        return self._sorted(self._roots)

    def forwards(self, filter: Filter) -> frozenset[Interface]:
        """Return the neighbours that must know a filter, from its witnesses alone, without a comparison."""
        entry = self._entries.get(filter)
        if entry is None or len(entry.witnesses) == 2:
            return frozenset()
        if not entry.witnesses:
            return self._told(filter)
        only = self._only(entry.witnesses[0])
        return frozenset() if only is None else self._told(filter) & only

    def beneath(self, filter: Filter) -> list[Filter]:
        """Return the filters with this filter as a witness: for all others nothing changes when the filter goes."""
        entry = self._entries.get(filter)
        return [] if entry is None else self._sorted(entry.testified)

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """Return the interfaces with a filter that the event matches."""
        return set().union(*(self._entries[filter].interfaces for filter in self._all.match(event)))

    def covering(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that cover a given filter, in the order of arrival."""
        return self._sorted(self._all.covering(filter))

    def covered(self, filter: Filter) -> list[Filter]:
        """Return the stored filters which a given filter covers, in the order of arrival."""
        return self._sorted(self._all.covered(filter))

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that overlap a given filter, in the order of arrival."""
        return self._sorted(self._all.overlapping(filter))

    def _sorted(self, filters: Iterable[Filter]) -> list[Filter]:
        return sorted(filters, key=lambda filter: self._entries[filter].order)

    # Witnesses

    def _only(self, entry: _Entry[Interface]) -> frozenset[Interface] | None:
        """Return the single neighbour from which a filter came, as a set.

        None if the filter also came from elsewhere.
        """
        if len(entry.interfaces) != 1 or not entry.interfaces <= self.neighbours:
            return None
        return frozenset(entry.interfaces)

    def _find_witnesses(self, entry: _Entry[Interface]) -> None:
        """Look for covers that hide a filter: first among the exposed filters, then, if doubt remains, among all.

        A covered filter is covered by a root, hence by an exposed filter.
        """
        found = self._pick(entry, self._exposed)
        if len(found) == 1 and self._only(found[0]) is not None:
            found = self._pick(entry, self._all)
        self._witnessed_by(entry, found)
        if entry.filter in self._exposed:
            self._testify(entry)

    def _pick(self, entry: _Entry[Interface], index: FilterIndex) -> tuple[_Entry[Interface], ...]:
        """Return a cover that suffices alone, else two that suffice together, else a single cover, else nothing."""
        by_only: dict[frozenset[Interface], _Entry[Interface]] = {}
        for filter in index.covering(entry.filter):
            cover = self._entries[filter]
            if cover is entry or (cover.order > entry.order and entry.filter.covers(filter)):
                continue  # of two filters with the same meaning, the older is the cover
            only = self._only(cover)
            if only is None:
                return (cover,)
            by_only.setdefault(only, cover)
            if len(by_only) == 2:
                break
        return tuple(by_only.values())

    def _testify(self, entry: _Entry[Interface]) -> None:
        """Make an exposed filter a witness to the exposed filters below, after its arrival or a new interface.

        Filters below a hidden filter are hidden by the same witnesses, so only exposed filters need a look.
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
        """Drop the second witnesses beside a filter that now came from elsewhere too: the filter suffices alone."""
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

    # The filters of an interface

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
