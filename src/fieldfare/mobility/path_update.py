"""Handover on an overlay without cycles.

A `MoveUpdate` follows the subscriptions over the same links to the old broker.

When the update arrives, the old broker can stop: on every broker of the path the new subscriptions came first, so all
later events go to the new broker. No completeness is needed: subscriptions may come and go everywhere at the same time.

The update takes the shortest way, if brokers know the ways to each other. If not (`addressed=False`), the update goes
wherever the old broker may be: along covering subscriptions and overlapping advertisements. If this finds nothing,
because a subscription is still under way, the shortest way is tried after some seconds.

With advertisements, subscriptions go only towards overlapping advertisements. If an advertisement and the update meet
on a link, the resulting subscription is behind the update. So the receiver returns the update once, behind the
advertisement, and the update comes again behind the subscription.

`CoveredUpdate` saves all this if the new broker need not send subscriptions. It is only for *complete* topologies,
where every subscription is in force everywhere; and only if direct messages between brokers are not faster than events
on the overlay: otherwise the old broker unsubscribes while an event is still on its way.
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
    """Handover for any overlay without cycles, complete or not."""

    handles: ClassVar[tuple[type[Message], ...]] = (*Subscribers.handles, ReturnedUpdate)

    def __init__(self, *, addressed: bool = True, again: float = 1.0) -> None:
        """Make the part; a flooded update without success is sent over the shortest way after `again` seconds."""
        super().__init__()
        self.addressed = addressed
        self.again = again
        self._waiting: dict[tuple[str, int], tuple[float, MoveUpdate]] = {}

    def confirm_path(self, client: str, visit: SubscriberVisit, *, told: bool, now: float) -> list[Send]:
        """Send the update behind the new subscriptions."""
        filters = tuple(self._client(client).subscriptions.values())
        addressed = self.addressed or not filters
        update = MoveUpdate(client, visit.source, self.base.name, visit.number, filters, addressed)
        if not addressed:
            self._waiting[client, visit.number] = now + self.again, replace(update, addressed=True)
        return self._forward(update, LOCAL)

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a returned update, or another message about moves."""
        if isinstance(message, ReturnedUpdate):
            return [Send(sender, replace(message.update, again=True))]
        return super().receive(message, sender, now)

    def receive_update(self, message: MoveUpdate, sender: str, now: float) -> list[Send]:
        """Process an update, pass the update on, or return it if the subscriptions before it are missing."""
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
        """Cancel the repetition of the update."""
        self._waiting.pop((client, visit.number), None)
        return []

    @property
    def wakes(self) -> float | None:
        """The time at which the first flooded update counts as lost."""
        return min((time for time, _ in self._waiting.values()), default=None)

    def tick(self, now: float) -> list[Send]:
        """Send lost updates over the shortest way."""
        late = [key for key, (time, _) in self._waiting.items() if time <= now]
        return [send for key in late for send in self._forward(self._waiting.pop(key)[1], LOCAL)]


class CoveredUpdate(PathUpdate):
    """Handover for complete topologies: if covering subscriptions exist here, the old broker is asked directly."""

    def confirm_path(self, client: str, visit: SubscriberVisit, *, told: bool, now: float) -> list[Send]:
        """Ask the old broker directly, if no neighbour needed a filter update."""
        if told:
            return super().confirm_path(client, visit, told=told, now=now)
        return [Send(visit.source, MoveUpdate(client, visit.source, self.base.name, visit.number))]


def _met_advertisement(routes: Routes, filters: Iterable[Filter], sender: str) -> bool:
    """Tell whether an advertisement is on its way to a neighbour whose subscription has not come back yet."""
    if not isinstance(routes, TableRoutes) or routes.advertised is None:
        return False
    advertisements, subscriptions = routes.advertised.advertisements, routes.subscriptions
    return any(
        any(advertisements.interfaces(other) - {sender} for other in advertisements.overlapping(filter))
        and not any(sender in subscriptions.interfaces(other) for other in subscriptions.covering(filter))
        for filter in filters
    )


def neighbours_towards(routes: Routes, filters: Iterable[Filter]) -> set[str]:
    """Return the neighbours that may lead to the client's old broker.

    Those with covering filters or overlapping advertisements.
    """
    if not isinstance(routes, TableRoutes):
        return set(routes.neighbours)
    found = {one for one, role in routes.roles.items() if role is Role.PARENT}  # a parent sends no filters
    for filter in filters:
        for other in routes.subscriptions.covering(filter):
            found |= routes.subscriptions.interfaces(other)
        if routes.advertised is not None:
            table = routes.advertised.advertisements
            for other in table.overlapping(filter):
                found |= table.interfaces(other)
    return found - {LOCAL}
