"""`CoverSet`: a changing set of filters and its minimal cover, the filters that no other filter of the set covers.

Each filter outside the cover has a *witness*: another filter of the set that covers the filter. Of filters with the
same meaning the oldest is the witness of the others, so no two filters are witnesses of each other. A filter without a
witness belongs to the cover. When a filter goes, only the filters with this witness look for another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import satisfiable
from fieldfare.tables.shared_index import Part, SharedIndex
from fieldfare.tables.updates import TableUpdate


@dataclass(eq=False, slots=True)
class _Member:
    filter: Filter
    order: int
    """number of arrival"""
    witness: _Member | None = None
    below: dict[_Member, None] | None = None
    """the members with this member as their witness"""


class CoverSet:
    """Filters and their minimal cover, over a part of a shared index.

    >>> from fieldfare.filters import parse
    >>> filters = CoverSet(SharedIndex())
    >>> filters.apply(TableUpdate(added=(parse("x < 9"), parse("x < 5"))))
    TableUpdate(added=(parse('x < 9'),), removed=())
    >>> filters.apply(TableUpdate(removed=(parse("x < 9"),)))
    TableUpdate(added=(parse('x < 5'),), removed=(parse('x < 9'),))
    """

    def __init__(self, index: SharedIndex) -> None:
        self._part: Part[_Member] = index.part()
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._part)

    def cover(self) -> Iterator[Filter]:
        """Iterate over the minimal cover, in the order of arrival."""
        return (member.filter for member in self._part if member.witness is None)

    def apply(self, update: TableUpdate) -> TableUpdate:
        """Remove filters and add others; return the change of the cover, for a non-redundant table.

        Filters that leave the cover because a new filter covers them are left out: the table forgets them itself.
        """
        for filter in update.added:
            satisfiable(filter)  # the update is applied as a whole or not at all
        before: dict[_Member, bool] = {}
        """the members whose place may have changed, and whether each was in the cover"""
        removed: list[_Member] = []
        for filter in update.removed:
            member = self._part.find(filter)
            if member is not None:
                self._remove(member, before)
                removed.append(member)
        held = self._part.shared.hold(update.added) if len(update.added) > 1 else ()  # all enter the index at once
        for filter in update.added:
            if self._part.find(filter) is None:
                self._add(filter, before)
        for entry in held:
            self._part.shared.release(entry)
        gone = {member: before.pop(member) for member in removed}
        added = [member.filter for member, was in before.items() if not was and member.witness is None]
        if not gone:
            return TableUpdate(tuple(added))
        lost = dict.fromkeys(member.filter for member, was in gone.items() if was)
        again = lost.keys() & set(added)
        return TableUpdate(tuple(f for f in added if f not in again), tuple(f for f in lost if f not in again))

    def _add(self, filter: Filter, before: dict[_Member, bool]) -> None:
        self._arrivals += 1
        member = _Member(filter, self._arrivals)
        self._part.add(member, filter)
        before[member] = False
        self._find_witness(member)
        if member.witness is None:
            for other in self._part.covered(filter, lambda one: one.witness is None and one is not member):
                before.setdefault(other, True)
                self._set_witness(other, member)

    def _remove(self, member: _Member, before: dict[_Member, bool]) -> None:
        before.setdefault(member, member.witness is None)
        self._part.remove(member.filter)
        self._set_witness(member, None)
        below = list(member.below or ())
        member.below = None
        for other in below:
            before.setdefault(other, False)
            other.witness = None
        for other in below:
            self._find_witness(other)

    def _find_witness(self, member: _Member) -> None:
        """Make a cover of a member its witness; the first cover that is found will do."""
        for other in self._part.covering(member.filter, lambda one: one is not member):
            if other.order < member.order or not member.filter.covers(other.filter):
                self._set_witness(member, other)
                return

    def _set_witness(self, member: _Member, witness: _Member | None) -> None:
        if member.witness is not None and member.witness.below is not None:
            member.witness.below.pop(member, None)
        member.witness = witness
        if witness is not None:
            if witness.below is None:
                witness.below = {}
            witness.below[member] = None
