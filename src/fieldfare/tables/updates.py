"""What a broker tells its neighbours when an interface changes its mind.

A neighbour knows of us only the *exported* filters: those that say all that others than itself want, without what a
larger one says already. When an interface adds or removes filters, that set changes a little, and `apply` finds the
difference without computing the set anew: only the filters added and removed, and those beneath the removed ones, can
enter or leave it.

The other side does its part. It forgets what a newer, larger filter of ours covers, so nobody takes that back. For the
same reason we must say again what the removal of the larger one uncovers, in the same message: were there a moment in
between, events would be lost in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Table, satisfiable


class TableUpdate(NamedTuple):
    """Filters that an interface adds and removes at once: first all removals, then all additions.

    SUB(f) is `TableUpdate(added=(f,))`, and UNSUB(f) with the filters U that it uncovers is `TableUpdate(U, (f,))`.
    """

    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


TableUpdates: TypeAlias = dict[Interface, TableUpdate]
"""whom to tell what; who need not hear of anything is not in it"""


def apply(table: Table[Interface], update: TableUpdate, sender: Interface) -> TableUpdates[Interface]:
    """Let an interface change its filters; gives what each neighbour must be told.

    The sender is told nothing: its own wishes do not change what others want of it.
    """
    for filter in update.added:
        satisfiable(filter)  # all of the update, or nothing of it
    named = dict.fromkeys((*update.removed, *update.added))
    before = {filter: _told(table, filter) for filter in named}
    removed, beneath = _remove(table, update.removed, sender)
    for filter in update.added:
        table.add(filter, sender)
    after = {filter: _told(table, filter) - {sender} for filter in (*named, *beneath)}

    lost: dict[Interface, list[Filter]] = {}
    for filter in removed:
        for neighbour in before[filter] - after[filter] - {sender}:
            lost.setdefault(neighbour, []).append(filter)
    gained: dict[Interface, list[Filter]] = {}
    for filter, told in after.items():
        # Who knew a larger filter has forgotten this one. To ask whether it was told of it before would lose events: a
        # forest in approximative mode also names neighbours that know a larger one.
        forgotten = beneath.get(filter, frozenset()) & lost.keys()
        for neighbour in told:
            if neighbour in forgotten or neighbour not in before.get(filter, told):
                gained.setdefault(neighbour, []).append(filter)
    return {
        neighbour: TableUpdate(tuple(gained.get(neighbour, ())), tuple(lost.get(neighbour, ())))
        for neighbour in in_order((*lost, *gained))
    }


def exported(table: Table[Interface], neighbour: Interface) -> tuple[Filter, ...]:
    """All that a neighbour must know, from scratch: for one that is new, or has forgotten.

    In a hierarchy the only neighbour is the master, whom we tell everything and who tells us nothing: then these are
    the roots of the table, and `apply` sends the master what becomes a root and what no longer is one.
    """
    return tuple(filter for filter in table.filters() if neighbour in table.forwards(filter))


def replacement(table: Table[Interface], filters: Iterable[Filter], sender: Interface) -> TableUpdate:
    """The update after which an interface has just these filters.

    It lets a redundant table serve neighbours. Such a table does not forget what newer filters cover, so after single
    updates it would keep for ever what the neighbour has since removed in silence.
    """
    wanted = dict.fromkeys(filters)
    had = dict.fromkeys(filter for filter in table.filters() if sender in table.interfaces(filter))
    return TableUpdate(tuple(f for f in wanted if f not in had), tuple(f for f in had if f not in wanted))


def in_order(interfaces: Iterable[Interface]) -> list[Interface]:
    """Interfaces, each once, in an order that is the same in every run, which that of a set is not."""
    return sorted(set(interfaces), key=repr)


def _told(table: Table[Interface], filter: Filter) -> frozenset[Interface]:
    return table.forwards(filter) if filter in table else frozenset()


def _remove(
    table: Table[Interface], filters: Iterable[Filter], sender: Interface
) -> tuple[list[Filter], dict[Filter, frozenset[Interface]]]:
    """Forget pairs; gives those that were there, and the filters beneath them, with who knew a larger one instead.

    One after the other: what lies beneath a filter is asked when those above it are gone.
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
