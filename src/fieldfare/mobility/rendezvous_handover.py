"""Handover with a rendezvous point (RP): all events pass the RP, so a subscription that reaches the RP gets all events.

On an overlay without cycles the RP is the root of a hierarchy: subscriptions and all events go up to the RP. The update
of a moving client goes up behind the subscriptions; from the RP, or from a broker below with the same knowledge, an
envelope goes to the old broker. The envelope is essential: on the links down it comes behind all events that the new
broker has missed.

A broker has the same knowledge if it has sent its parent a covering filter, and has heard since that the filter is
*complete to the RP*. The RP says so back to the new broker, and all brokers on the way note it, until they withdraw the
filter.

With `complete=True` all filters count as complete: for complete topologies only, as with `CoveredUpdate`.
"""

from __future__ import annotations

from typing import ClassVar

from fieldfare.filters.filter import Filter
from fieldfare.mobility.subscriber_messages import CompleteToRendezvous, MoveUpdate, UpwardUpdate
from fieldfare.mobility.subscribers import Subscribers, SubscriberVisit
from fieldfare.protocol.messages import FilterUpdate, Message, Role, Send
from fieldfare.routing.routes import LOCAL
from fieldfare.routing.table_routes import TableRoutes


class RendezvousUpdate(Subscribers):
    """Handover for hierarchies, whose root is the RP."""

    handles: ClassVar[tuple[type[Message], ...]] = (*Subscribers.handles, UpwardUpdate, CompleteToRendezvous)

    def __init__(self, *, complete: bool = False) -> None:
        super().__init__()
        self.complete = complete
        self.known: set[Filter] = set()
        """filters that are complete to the RP"""
        self._asked: dict[tuple[str, int], set[Filter]] = {}
        """filters that will be complete, unless withdrawn before the answer: by client and visit"""

    @property
    def parent(self) -> str | None:
        """The next broker up; None at the RP."""
        roles = self.base.broker.routes.roles
        return next((one for one, role in roles.items() if role is Role.PARENT), None)

    def confirm_path(self, client: str, visit: SubscriberVisit, *, told: bool, now: float) -> list[Send]:
        """Send the update upwards, unless all filters are known to be complete here."""
        filters = tuple(self._client(client).subscriptions.values())
        update = MoveUpdate(client, visit.source, self.base.name, visit.number, filters)
        if self.complete and not told:
            return [Send(visit.source, update)]
        return self._climb(update, LOCAL, now)

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process an update on its way to the RP, an answer of the RP, or another message about moves."""
        match message:
            case UpwardUpdate():
                return self._climb(message.update, sender, now)
            case CompleteToRendezvous():
                self.known |= self._asked.pop((message.update.client, message.update.moves), set())
                return self._back(message)
        return super().receive(message, sender, now)

    def transform(self, send: Send, now: float) -> list[Send]:
        """Note filters withdrawn from the parent: they are no longer known to be complete."""
        if send.to == self.parent and isinstance(send.message, FilterUpdate) and send.message.removed:
            told = self.base.broker.routes.exports(send.to)
            for filters in (self.known, *self._asked.values()):
                filters.intersection_update([f for f in filters if any(other.covers(f) for other in told)])
        return super().transform(send, now)

    def _climb(self, update: MoveUpdate, sender: str, now: float) -> list[Send]:
        """Answer an update, or send the update upwards."""
        if self.parent is not None and not self._knows(update.filters, sender):
            self._asked[update.client, update.moves] = set(update.filters)
            return [Send(self.parent, UpwardUpdate(update))]
        here = update.source == self.base.name
        answer = self.receive_update(update, sender, now) if here else [self.base.envelope(update.source, update)]
        return answer + ([] if self.complete else self._back(CompleteToRendezvous(update)))

    def _knows(self, filters: tuple[Filter, ...], sender: str) -> bool:
        """Tell whether all events of the filters are on their way here already."""
        if not self.complete:
            return all(any(other.covers(filter) for other in self.known) for filter in filters)
        routes = self.base.broker.routes
        assert isinstance(routes, TableRoutes)
        table = routes.subscriptions
        return all(any(table.interfaces(other) - {sender} for other in table.covering(f)) for f in filters)

    def _back(self, message: CompleteToRendezvous) -> list[Send]:
        target = message.update.target
        return [] if target == self.base.name else [Send(self.base.next_hop(target), message)]
