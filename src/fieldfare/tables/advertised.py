"""`AdvertisedTable`: subscriptions travel only to where something they overlap is published.

Publishers say beforehand what they will publish. Advertisements are exported to all neighbours, just as subscriptions
are when there are no advertisements; a subscription is told only to those neighbours that advertise something it
overlaps. So there are two tables, and the one of advertisements says which way the subscriptions of the other may go.

When the last advertisement goes that a subscription overlapped, the subscription has lost its way, and there are two
manners to clear up. Either who sent it takes it back: then each broker's entries at a neighbour are what the broker
last said, and nothing else. Or the neighbour *drops* by itself what nobody else advertises any more, also when it
arrives late: that saves the messages. But a subscription may cross the end of one advertisement and the beginning of
another, or of the same again. The neighbour then accepts it, while its sender, hearing of the end, believes it dropped;
if it is cancelled before the sender hears of the beginning, it stays there, and events go a way where nobody wants
them. No event is lost in either manner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Generic, NamedTuple

from fieldfare.filters.advertisement import Advertisement
from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Table, Towards
from fieldfare.tables.updates import Update, Updates, apply


class Told(NamedTuple, Generic[Interface]):
    """Whom to tell what."""

    advertisements: Updates[Interface]
    subscriptions: Updates[Interface]


class AdvertisedTable(Generic[Interface]):
    """A table of advertisements and one of subscriptions, joined.

    Both hold filters. An advertisement proper also promises that fields it does not mention will not occur, and a
    filter cannot say that. To forget this promise errs on the safe side, if it is forgotten for covering and for
    overlap alike: as filters `a = 1` covers `a = 1 AND b = 1` and stands for both, hence it must also overlap `b = 1`,
    which as a promise it would not.
    """

    def __init__(
        self, advertisements: Table[Interface], subscriptions: Table[Interface], *, drop: bool = False
    ) -> None:
        """Join two tables; the `towards` of the second must be `advertisers` of the first.

        With `drop`, subscriptions that have lost their way are dropped where they are, not taken back. All brokers of a
        network must do the same.
        """
        self.advertisements = advertisements
        self.subscriptions = subscriptions
        self.drop = drop

    def subscribe(self, update: Update, sender: Interface) -> Updates[Interface]:
        """Let an interface change its subscriptions."""
        if self.drop:
            update = update._replace(added=tuple(f for f in update.added if self._has_way(f, sender)))
        return apply(self.subscriptions, update, sender)

    def advertise(self, update: Update, sender: Interface) -> Told[Interface]:
        """Let an interface change its advertisements.

        Others hear of the advertisements, and the sender of the subscriptions that may go its way now, or no longer
        may. Nobody else hears of subscriptions: what may go another's way depends on what the other advertises.
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
        return Told(told, {sender: Update(gained, lost)} if gained or lost else {})

    def may_publish(self, event: Mapping[str, object], publisher: Interface) -> bool:
        """Has the publisher advertised such an event?"""
        return publisher in self.advertisements.match(event)

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """The interfaces that want an event."""
        return self.subscriptions.match(event)

    def _drop(self, filters: list[Filter]) -> None:
        """Forget those that have no way to go: nobody need be told, for nobody was."""
        for filter in filters:
            for interface in list(self.subscriptions.interfaces(filter)):
                if not self._has_way(filter, interface):
                    self.subscriptions.remove(filter, interface)

    def _has_way(self, filter: Filter, interface: Interface) -> bool:
        """Does somebody else advertise what an interface wants? A client may wait until somebody does."""
        return interface not in self.subscriptions.neighbours or any(
            self.advertisements.interfaces(advertisement) - {interface}
            for advertisement in self.advertisements.overlapping(filter)
        )


def advertisers(advertisements: Table[Interface]) -> Towards[Interface]:
    """Where subscriptions may go: to the neighbours that advertise something they overlap."""

    def towards(filter: Filter) -> frozenset[Interface]:
        return advertisements.neighbours & {
            interface
            for advertisement in advertisements.overlapping(filter)
            for interface in advertisements.interfaces(advertisement)
        }

    return towards


def as_filter(advertisement: Advertisement) -> Filter:
    """A filter that matches all events that an advertisement determines: fields that it mentions may be missing.

    >>> from fieldfare.filters import parse
    >>> str(as_filter(Advertisement(parse("symbol = 'IBM'"))))
    "symbol IS MISSING OR symbol = 'IBM'"
    """
    sides = {path: advertisement.advertised(path) for path in sorted(advertisement.filter.fields())}
    return Filter([Branch({path: values for path, values in sides.items() if not values.is_full})])


def _listed(order: Iterable[Filter], filters: AbstractSet[Filter]) -> tuple[Filter, ...]:
    return tuple(filter for filter in order if filter in filters)
