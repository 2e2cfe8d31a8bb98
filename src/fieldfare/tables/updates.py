"""The updates for neighbours when an interface changes its filters.

A neighbour knows only the *exported* filters of a broker: the minimal cover of the filters from all other interfaces.
When an interface adds or removes filters, the exported set changes a little. `apply` finds the difference without a new
computation of the set: only the filters added and removed, and those beneath the removed filters, can enter or leave
the set.

The neighbour does its part: a new, larger filter makes the neighbour forget the covered filters, so no broker withdraws
them. For the same reason the removal of the larger filter must add the uncovered filters again, in the same message: a
pause in between would lose events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Table, satisfiable


class TableUpdate(NamedTuple):
    """Filters which an interface adds and removes at once: first all removals, then all additions.

    SUB(f) is `TableUpdate(added=(f,))`, and UNSUB(f) with the uncovered filters U is `TableUpdate(U, (f,))`.
    """

    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


TableUpdates: TypeAlias = dict[Interface, TableUpdate]
"""the update of each neighbour; a neighbour without an update is left out"""


def apply(table: Table[Interface], update: TableUpdate, sender: Interface) -> TableUpdates[Interface]:
    """Apply a change of an interface's filters to a table; return the updates for the neighbours.

    The sender gets no update: the own filters of a neighbour do not change the filters of the others.
    """
    for filter in update.added:
        satisfiable(filter)  # the update is applied as a whole or not at all
    named = dict.fromkeys((*update.removed, *update.added))
    before = {filter: _told(table, filter) for filter in named}
    removed, beneath = _remove(table, update.removed, sender)
    table.add_many((filter, sender) for filter in update.added)
    after = {filter: _told(table, filter) - {sender} for filter in (*named, *beneath)}

    lost: dict[Interface, list[Filter]] = {}
    for filter in removed:
        for neighbour in before[filter] - after[filter] - {sender}:
            lost.setdefault(neighbour, []).append(filter)
    gained: dict[Interface, list[Filter]] = {}
    for filter, told in after.items():
        # A neighbour that knew a larger filter has forgotten the smaller. `before` cannot replace this test without the
        # loss of events: a forest in approximative mode also names neighbours that know a larger filter.
        forgotten = beneath.get(filter, frozenset()) & lost.keys()
        for neighbour in told:
            if neighbour in forgotten or neighbour not in before.get(filter, told):
                gained.setdefault(neighbour, []).append(filter)
    return {
        neighbour: TableUpdate(tuple(gained.get(neighbour, ())), tuple(lost.get(neighbour, ())))
        for neighbour in in_order((*lost, *gained))
    }


def exported(table: Table[Interface], neighbour: Interface) -> tuple[Filter, ...]:
    """Return all filters which a neighbour must know, from scratch: for a new neighbour, or one after a loss of state.

    In a hierarchy the only neighbour is the master, which learns all filters and sends none. Then the result is the
    roots of the table, and `apply` sends the master the filters that become or cease to be roots.
    """
    return tuple(filter for filter in table.filters() if neighbour in table.forwards(filter))


def replacement(table: Table[Interface], filters: Iterable[Filter], sender: Interface) -> TableUpdate:
    """Return the update after which an interface has exactly these filters.

    With such updates a redundant table can serve neighbours. A redundant table does not forget covered filters, so
    after incremental updates the table would keep for ever the filters which the neighbour has silently dropped.
    """
    wanted = dict.fromkeys(filters)
    had = dict.fromkeys(filter for filter in table.filters() if sender in table.interfaces(filter))
    return TableUpdate(tuple(f for f in wanted if f not in had), tuple(f for f in had if f not in wanted))


def in_order(interfaces: Iterable[Interface]) -> list[Interface]:
    """Return the interfaces, each once, in an order that is the same in every run, unlike the order of a set."""
    return sorted(set(interfaces), key=repr)


def _told(table: Table[Interface], filter: Filter) -> frozenset[Interface]:
    return table.forwards(filter) if filter in table else frozenset()


def _remove(
    table: Table[Interface], filters: Iterable[Filter], sender: Interface
) -> tuple[list[Filter], dict[Filter, frozenset[Interface]]]:
    """Forget pairs.

    Return the removed filters, and the filters beneath with the neighbours that knew a larger filter instead.

    The removal goes filter by filter: the filters beneath are determined after the larger filters are gone.
    """
    removed: list[Filter] = []
    beneath: dict[Filter, frozenset[Interface]] = {}
    for filter in filters:
        if sender in table.interfaces(filter):
            told = table.forwards(filter) - {sender}
            for other in table.beneath(filter) if told else ():
                beneath[other] = beneath.get(other, frozenset()) | told
            table.remove(filter, sender)
            removed.append(filter)
    return removed, beneath
