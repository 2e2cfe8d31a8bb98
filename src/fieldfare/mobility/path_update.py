"""Handover on an overlay without cycles: an `MoveUpdate` follows the subscriptions on the same links to the old broker.

When it arrives, whatever the old broker would miss from then on goes to the new one: at every broker on the way the
new subscriptions came first. This needs no completeness: subscriptions may come and go everywhere at the same time.

The update goes the shortest way, if brokers know the ways to each other. If not (`addressed=False`) it goes wherever
the old broker may be: along subscriptions that cover the client's, and advertisements that overlap them. Should that
find nothing, because a subscription is still under way, the shortest way is tried after all.

With advertisements, the subscriptions go only where something is advertised. If an advertisement and the update meet on
a link, the subscription that the one causes is behind the other. So the broker that gets the update sends it back once,
behind the advertisement, and it comes again behind the subscription.

`CoveredUpdate` spares all this if the new broker need tell nobody anything. It is only for *complete* topologies, where
every subscription has received effect everywhere it should; and only if what brokers tell each other directly is not
faster than events on the overlay: else the old broker asks no more while an event is still on its way to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from msgspec.structs import replace

from fieldfare.filters.filter import Filter
from fieldfare.mobility.subscriber_messages import MoveUpdate, ReturnedUpdate
from fieldfare.mobility.subscribers import Subscribers, SubscriberVisit
from fieldfare.protocol.messages import Message, Role, Send
from fieldfare.routing.routes import LOCAL, Routes
from fieldfare.routing.table_routes import TableRoutes


class PathUpdate(Subscribers):
    """For any overlay without cycles, complete or not."""

    handles: ClassVar[tuple[type[Message], ...]] = (*Subscribers.handles, ReturnedUpdate)

    def __init__(self, *, addressed: bool = True, again: float = 1.0) -> None:
        """Nobody is here; a flooded update gets so many seconds until it is sent as a letter."""
        super().__init__()
        self.addressed = addressed
        self.again = again
        self._waiting: dict[tuple[str, int], tuple[float, MoveUpdate]] = {}

    def confirm_path(self, client: str, visit: SubscriberVisit, *, told: bool, now: float) -> list[Send]:
        """Send the update behind what neighbours have just been told."""
        filters = tuple(self._client(client).subscriptions.values())
        addressed = self.addressed or not filters
        update = MoveUpdate(client, visit.source, self.base.name, visit.number, filters, addressed)
        if not addressed:
            self._waiting[client, visit.number] = now + self.again, replace(update, addressed=True)
        return self._forward(update, LOCAL)

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Hear also of updates that come back."""
        if isinstance(message, ReturnedUpdate):
            return [Send(sender, replace(message.update, again=True))]
        return super().receive(message, sender, now)

    def receive_update(self, message: MoveUpdate, sender: str, now: float) -> list[Send]:
        """Take an update, or pass it on; send it back if the subscriptions that it should be behind are not here."""
        routes = self.base.broker.routes
        if sender in routes.neighbours and not message.again and _met_advertisement(routes, message.filters, sender):
            return [Send(sender, ReturnedUpdate(message))]
        if message.source == self.base.name:
            return super().receive_update(message, sender, now)
        return self._forward(replace(message, again=False), sender)

    def _forward(self, update: MoveUpdate, sender: str) -> list[Send]:
        if update.addressed:
            return [Send(self.base.next_hop(update.source), update)]
        return [
            Send(to, update) for to in sorted(neighbours_towards(self.base.broker.routes, update.filters) - {sender})
        ]

    def session_arrived(self, client: str, visit: SubscriberVisit, now: float) -> list[Send]:
        """Do not send the update again."""
        self._waiting.pop((client, visit.number), None)
        return []

    @property
    def wakes(self) -> float | None:
        """When the first flooded update counts as lost."""
        return min((time for time, _ in self._waiting.values()), default=None)

    def tick(self, now: float) -> list[Send]:
        """Send the updates that have found nothing on the shortest way."""
        late = [key for key, (time, _) in self._waiting.items() if time <= now]
        return [send for key in late for send in self._forward(self._waiting.pop(key)[1], LOCAL)]


class CoveredUpdate(PathUpdate):
    """For complete topologies only: if others here want as much already, the old broker is asked directly."""

    def confirm_path(self, client: str, visit: SubscriberVisit, *, told: bool, now: float) -> list[Send]:
        """Ask directly, if neighbours had to be told nothing."""
        if told:
            return super().confirm_path(client, visit, told=told, now=now)
        return [Send(visit.source, MoveUpdate(client, visit.source, self.base.name, visit.number))]


def _met_advertisement(routes: Routes, filters: Iterable[Filter], sender: str) -> bool:
    """Is there something advertised here that a neighbour must be told of, but not yet what it wants of that?"""
    if not isinstance(routes, TableRoutes) or routes.advertised is None:
        return False
    promises, wishes = routes.advertised.advertisements, routes.subscriptions
    return any(
        any(promises.interfaces(other) - {sender} for other in promises.overlapping(filter))
        and not any(sender in wishes.interfaces(other) for other in wishes.covering(filter))
        for filter in filters
    )


def neighbours_towards(routes: Routes, filters: Iterable[Filter]) -> set[str]:
    """Neighbours behind which somebody may be who wants all of a filter: its client's old broker is behind one."""
    if not isinstance(routes, TableRoutes):
        return set(routes.neighbours)
    found = {one for one, role in routes.roles.items() if role is Role.PARENT}  # who does not say what it wants
    for filter in filters:
        for other in routes.subscriptions.covering(filter):
            found |= routes.subscriptions.interfaces(other)
        if routes.advertised is not None:
            table = routes.advertised.advertisements
            for other in table.overlapping(filter):
                found |= table.interfaces(other)
    return found - {LOCAL}
