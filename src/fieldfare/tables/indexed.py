"""`IndexedTable`: a routing table over the matching engine. The table keeps two witnesses a filter, and no graph.

A neighbour j must know the minimal cover of the filters of all others. So j need not know a filter f exactly if some
cover of f did not come from j alone. At most two *witnesses* answer the question for every neighbour: a cover of f and,
if the cover came from a single neighbour, another cover which did not come from the same neighbour alone. A filter
without witnesses is a root. A filter with a single witness, from neighbour j alone, goes to j. A filter with both is
hidden until a witness goes or changes its interfaces; only then does the table look for new witnesses.

Witnesses are looked for among the *exposed* filters (all that are not hidden), which are few. On average each filter is
witness to two others, so a change costs a few look-ups, however many filters there are. The table has a part of an
index that other tables may share, and no index of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Generic, TypeAlias

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Table, Towards, satisfiable
from fieldfare.tables.shared_index import Entries, Part, SharedIndex

Watch: TypeAlias = Callable[[Filter, Interface, bool], None]
"""called with each pair that is added (True) or removed (False)"""


@dataclass(eq=False, slots=True)
class _Entry(Generic[Interface]):
    """A filter with its interfaces and its witnesses."""

    filter: Filter
    order: int
    """number of arrival"""
    interfaces: frozenset[Interface] = frozenset()
    witnesses: tuple[_Entry[Interface], ...] = ()
    testified: dict[_Entry[Interface], None] | None = None
    """the entries with this entry as a witness"""
    exposed: bool = False
    """whether some neighbour may have to know the filter"""


class IndexedTable(Table[Interface]):
    """Filters and their interfaces on the engine's index; the same answers as the poset, at any size."""

    def __init__(
        self,
        neighbours: Iterable[Interface] = (),
        *,
        towards: Towards[Interface] | None = None,
        redundant: bool = False,
        index: SharedIndex | None = None,
        watch: Watch[Interface] | None = None,
    ) -> None:
        """Make an empty table, over a shared index or an index of its own."""
        super().__init__(neighbours, towards=towards)
        self.redundant = redundant
        self._watch = watch
        self._entries: dict[Filter, _Entry[Interface]] = {}
        self._arrivals = 0
        self._part: Part[_Entry[Interface]] = (SharedIndex() if index is None else index).part()
        self._sizes: Counter[Interface] = Counter()
        """the number of filters of each interface"""
        self._alone: dict[Interface, frozenset[Interface]] = {}
        """each interface as a set, which many entries share"""

    # Pairs

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair; for many pairs, `add_many` is faster."""
        satisfiable(filter)
        entry = self._entries.get(filter)
        if entry is not None and interface in entry.interfaces:
            return False
        covered: list[_Entry[Interface]] = []
        if self._sizes[interface] and not self.redundant:
            if any(self._part.covering(filter, lambda other: interface in other.interfaces)):
                return False
            covered = self._part.covered(filter, lambda other: interface in other.interfaces)
        if entry is None:
            self._arrivals += 1
            entry = self._entries[filter] = _Entry(filter, self._arrivals)
            self._part.add(entry, filter)
            self._join(entry, interface)
            self._find_witnesses(entry)
        else:
            before = self._only(entry)
            self._join(entry, interface)
            if before != (only := self._only(entry)):
                if only is None:
                    self._suffice(entry)
                if entry.exposed:
                    self._testify(entry)
        for other in sorted(covered, key=_by_arrival):  # after the larger filter, their witness from now on
            self.remove(other.filter, interface)
        return True

    def add_many(self, pairs: Iterable[tuple[Filter, Interface]]) -> int:
        """Store many pairs, with a single update of the index; return the number of pairs that changed the table."""
        todo = [(satisfiable(filter), interface) for filter, interface in pairs]
        if len(todo) == 1:
            return int(self.add(*todo[0]))
        with self._part.shared.holding([filter for filter, _ in todo]):
            return sum(self.add(filter, interface) for filter, interface in todo)

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair, and look for new witnesses where the filter was a witness."""
        entry = self._entries.get(filter)
        if entry is None or interface not in entry.interfaces:
            return False
        before = self._only(entry)
        self._leave(entry, interface)
        if not entry.interfaces:
            del self._entries[filter]
            self._part.remove(filter)
            self._witnessed_by(entry, ())
        if not entry.interfaces or before != self._only(entry):
            for other in list(entry.testified or ()):
                self._find_witnesses(other)
        return True

    def _join(self, entry: _Entry[Interface], interface: Interface) -> None:
        if self._watch is not None:
            self._watch(entry.filter, interface, True)
        self._sizes[interface] += 1
        alone = self._alone.setdefault(interface, frozenset((interface,)))
        entry.interfaces = entry.interfaces | alone if entry.interfaces else alone

    def _leave(self, entry: _Entry[Interface], interface: Interface) -> None:
        if self._watch is not None:
            self._watch(entry.filter, interface, False)
        self._sizes[interface] -= 1
        entry.interfaces -= self._alone[interface]
        if not self._sizes[interface]:
            del self._sizes[interface], self._alone[interface]

    def filters(self) -> Iterator[Filter]:
        """Iterate over a copy, so that the table may change meanwhile."""
        return iter(list(self._entries))

    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Return the interfaces of a filter; an empty set for a filter that is not stored."""
        entry = self._entries.get(filter)
        return frozenset() if entry is None else entry.interfaces

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, filter: object) -> bool:
        return filter in self._entries

    # Questions

    def roots(self) -> list[Filter]:
        """Return the minimal cover: the filters without witnesses."""
        return [filter for filter, entry in self._entries.items() if not entry.witnesses]

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
        return [] if entry is None else _listed(entry.testified or ())

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """Return the interfaces with a filter that the event matches."""
        return self._interfaces_of(self._part.shared.match(event))

    def recipients(self, event: Mapping[str, object], matched: Entries, without: Interface) -> set[Interface]:
        """Return the interfaces of the filters that an event matches, given the matches of the shared index."""
        if len(self._sizes) == (without in self._sizes):
            return set()  # no other interface has a filter
        found = self._interfaces_of(matched)
        found.discard(without)
        return found

    def _interfaces_of(self, matched: Entries) -> set[Interface]:
        return set().union(*(entry.interfaces for entry in self._part.select(matched)))

    def covering(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that cover a given filter, in the order of arrival."""
        return _listed(self._part.covering(filter))

    def covered(self, filter: Filter) -> list[Filter]:
        """Return the stored filters which a given filter covers, in the order of arrival."""
        return _listed(self._part.covered(filter))

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that overlap a given filter, in the order of arrival."""
        return _listed(self._part.overlapping(filter))

    # Witnesses

    def _only(self, entry: _Entry[Interface]) -> frozenset[Interface] | None:
        """Return the single neighbour from which a filter came, as a set.

        None if the filter also came from elsewhere.
        """
        return entry.interfaces if len(entry.interfaces) == 1 and entry.interfaces <= self.neighbours else None

    def _find_witnesses(self, entry: _Entry[Interface]) -> None:
        """Look for covers that hide a filter: first among the exposed filters, then, if doubt remains, among all.

        A covered filter is covered by a root, hence by an exposed filter.
        """
        found = self._pick(entry, exposed=True)
        if len(found) == 1 and self._only(found[0]) is not None:
            found = self._pick(entry, exposed=False)
        self._witnessed_by(entry, found)
        if entry.exposed:
            self._testify(entry)

    def _pick(self, entry: _Entry[Interface], *, exposed: bool) -> tuple[_Entry[Interface], ...]:
        """Return a cover that suffices alone, else two that suffice together, else a single cover, else nothing."""
        by_only: dict[frozenset[Interface], _Entry[Interface]] = {}
        for cover in self._part.covering(entry.filter, lambda one: one is not entry and one.exposed >= exposed):
            if cover.order > entry.order and entry.filter.covers(cover.filter):
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
        for other in self._part.covered(entry.filter, lambda one: one is not entry and one.exposed):
            if entry.witnesses and other.order < entry.order and other.filter.covers(entry.filter):
                continue  # both mean the same
            if only is None or not other.witnesses:
                self._witnessed_by(other, (entry,))
            elif self._only(other.witnesses[0]) != only:
                self._witnessed_by(other, (other.witnesses[0], entry))

    def _suffice(self, entry: _Entry[Interface]) -> None:
        """Drop the second witnesses beside a filter that now came from elsewhere too: the filter suffices alone."""
        for other in list(entry.testified or ()):
            if len(other.witnesses) == 2:
                self._witnessed_by(other, (entry,))

    def _witnessed_by(self, entry: _Entry[Interface], witnesses: tuple[_Entry[Interface], ...]) -> None:
        for old in entry.witnesses:
            assert old.testified is not None
            del old.testified[entry]
        entry.witnesses = witnesses
        for new in witnesses:
            if new.testified is None:
                new.testified = {}
            new.testified[entry] = None
        hidden = len(witnesses) == 2 or (len(witnesses) == 1 and self._only(witnesses[0]) is None)
        entry.exposed = bool(entry.interfaces) and not hidden


def _by_arrival(entry: _Entry[Interface]) -> int:
    return entry.order


def _listed(entries: Iterable[_Entry[Interface]]) -> list[Filter]:
    return [entry.filter for entry in sorted(entries, key=_by_arrival)]
