"""`AdvertisedTable`: subscriptions travel only towards publishers with an overlapping advertisement.

Publishers advertise events before they publish. All neighbours learn advertisements, as they learn subscriptions in a
network without advertisements; a subscription goes only to neighbours with an overlapping advertisement. So there are
two tables, and the table of advertisements directs the subscriptions of the other.

When the last overlapping advertisement ends, a subscription has no direction left. There are two ways to clear up.
Either the sender withdraws the subscription: then the entries at a neighbour are exactly the last words of the broker.
Or the neighbour itself *drops* subscriptions without an advertisement, late arrivals too, and saves the messages. The
trap of dropping: a subscription may cross the end of one advertisement and the beginning of another. The neighbour then
accepts the subscription, but its sender, on the news of the end, believes the subscription dropped. If the subscription
is cancelled before the sender hears of the new advertisement, the entry stays for ever, and events go where nobody
subscribes. Neither way loses an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Generic, NamedTuple

from fieldfare.filters.advertisement import Advertisement
from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Table, Towards
from fieldfare.tables.updates import TableUpdate, TableUpdates, apply


class NeighbourUpdates(NamedTuple, Generic[Interface]):
    """The updates for neighbours, of advertisements and of subscriptions."""

    advertisements: TableUpdates[Interface]
    subscriptions: TableUpdates[Interface]


class AdvertisedTable(Generic[Interface]):
    """A table of advertisements and a table of subscriptions, joined.

    Both tables hold filters. An advertisement proper also excludes fields which it does not mention; a filter cannot
    express the exclusion. Tables forget the exclusion, for covering and for overlap alike, which is safe: as filters,
    `a = 1` covers `a = 1 AND b = 1` and stands for both, hence must also overlap `b = 1`, although the advertisement
    would not.
    """

    def __init__(
        self, advertisements: Table[Interface], subscriptions: Table[Interface], *, drop: bool = False
    ) -> None:
        """Join two tables; the `towards` of the second must be `advertisers` of the first.

        With `drop`, a table drops subscriptions without a direction instead of waiting for a withdrawal. All brokers of
        a network must use the same setting.
        """
        self.advertisements = advertisements
        self.subscriptions = subscriptions
        self.drop = drop

    def subscribe(self, update: TableUpdate, sender: Interface) -> TableUpdates[Interface]:
        """Apply a change of the subscriptions of an interface; return the updates for neighbours."""
        if self.drop:
            update = update._replace(added=tuple(f for f in update.added if self._has_way(f, sender)))
        return apply(self.subscriptions, update, sender)

    def advertise(self, update: TableUpdate, sender: Interface) -> NeighbourUpdates[Interface]:
        """Apply a change of the advertisements of an interface; return the updates for neighbours.

        The other neighbours learn the advertisements. The sender learns the subscriptions which may now go in its
        direction, or withdraws those which may no longer: the direction of other neighbours depends on their own
        advertisements only.
        """
        changing = (*update.removed, *update.added)
        concerned = list(dict.fromkeys(s for a in changing for s in self.subscriptions.overlapping(a)))
        before = {s for s in concerned if sender in self.subscriptions.forwards(s)}
        told = apply(self.advertisements, update, sender)
        after = {s for s in concerned if sender in self.subscriptions.forwards(s)}
        gained, lost = _listed(concerned, after - before), _listed(concerned, before - after)
        if self.drop:
            lost = ()
            self._drop(concerned)
        return NeighbourUpdates(told, {sender: TableUpdate(gained, lost)} if gained or lost else {})

    def may_publish(self, event: Mapping[str, object], publisher: Interface) -> bool:
        """Tell whether an advertisement of the publisher matches the event."""
        return publisher in self.advertisements.match(event)

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """Return the interfaces with a subscription that the event matches."""
        return self.subscriptions.match(event)

    def _drop(self, filters: list[Filter]) -> None:
        """Forget the subscriptions without a direction.

        No neighbour learns of the removal, because no neighbour knew them.
        """
        for filter in filters:
            for interface in list(self.subscriptions.interfaces(filter)):
                if not self._has_way(filter, interface):
                    self.subscriptions.remove(filter, interface)

    def _has_way(self, filter: Filter, interface: Interface) -> bool:
        """Tell whether another interface advertises events for a filter. A client may wait for an advertisement."""
        return interface not in self.subscriptions.neighbours or any(
            self.advertisements.interfaces(advertisement) - {interface}
            for advertisement in self.advertisements.overlapping(filter)
        )


def advertisers(advertisements: Table[Interface]) -> Towards[Interface]:
    """Return the direction of subscriptions: the neighbours with an overlapping advertisement."""

    def towards(filter: Filter) -> frozenset[Interface]:
        return advertisements.neighbours & {
            interface
            for advertisement in advertisements.overlapping(filter)
            for interface in advertisements.interfaces(advertisement)
        }

    return towards


def as_filter(advertisement: Advertisement) -> Filter:
    """Return a filter for all events that an advertisement allows; the mentioned fields may be missing from an event.

    >>> from fieldfare.filters import parse
    >>> str(as_filter(Advertisement(parse("symbol = 'IBM'"))))
    "symbol IS MISSING OR symbol = 'IBM'"
    """
    sides = {path: advertisement.advertised(path) for path in sorted(advertisement.filter.fields())}
    return Filter([Branch({path: values for path, values in sides.items() if not values.is_full})])


def _listed(order: Iterable[Filter], filters: AbstractSet[Filter]) -> tuple[Filter, ...]:
    return tuple(filter for filter in order if filter in filters)
