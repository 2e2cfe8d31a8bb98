"""Handover with a rendezvous point (RP): all events pass it, so a subscription that has reached it gets all of them.

On an overlay without cycles the RP is the root of a hierarchy: subscriptions go up to it, and so do all events. The
update of a client that moves goes up behind the subscriptions; from the RP, or from a broker below it that knows as
much, a letter goes to the old broker. It must be a letter: on the links down it comes behind all events that the new
broker has missed.

A broker knows as much if it has told its parent of something that covers the filter, and has heard since that this is
*complete to the RP*. The RP says so back to the new broker, and all on the way note it, until they take it back.

With `complete=True` all that was told counts as complete: for complete topologies only, as with `CoveredUpdate`.
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
    """For hierarchies, whose root is the RP."""

    handles: ClassVar[tuple[type[Message], ...]] = (*Subscribers.handles, UpwardUpdate, CompleteToRendezvous)

    def __init__(self, *, complete: bool = False) -> None:
        """Nobody is here."""
        super().__init__()
        self.complete = complete
        self.known: set[Filter] = set()
        """what is complete to the RP"""
        self._asked: dict[tuple[str, int], set[Filter]] = {}
        """what will be, if it is not taken back before the answer is here: by client and visit"""

    @property
    def parent(self) -> str | None:
        """The next one up; the RP has none."""
        roles = self.base.broker.routes.roles
        return next((one for one, role in roles.items() if role is Role.PARENT), None)

    def confirm_path(self, client: str, visit: SubscriberVisit, *, told: bool, now: float) -> list[Send]:
        """Send the update upwards, unless it is known here that all is complete."""
        filters = tuple(self._client(client).subscriptions.values())
        update = MoveUpdate(client, visit.source, self.base.name, visit.number, filters)
        if self.complete and not told:
            return [Send(visit.source, update)]
        return self._climb(update, LOCAL, now)

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Hear also of updates that are for the RP, and of its answers."""
        match message:
            case UpwardUpdate():
                return self._climb(message.update, sender, now)
            case CompleteToRendezvous():
                self.known |= self._asked.pop((message.update.client, message.update.moves), set())
                return self._back(message)
        return super().receive(message, sender, now)

    def transform(self, send: Send, now: float) -> list[Send]:
        """What is taken back from the parent is no longer known to be complete."""
        if send.to == self.parent and isinstance(send.message, FilterUpdate) and send.message.removed:
            told = self.base.broker.routes.exports(send.to)
            for filters in (self.known, *self._asked.values()):
                filters.intersection_update([f for f in filters if any(other.covers(f) for other in told)])
        return super().transform(send, now)

    def _climb(self, update: MoveUpdate, sender: str, now: float) -> list[Send]:
        """Answer an update, or send it upwards."""
        if self.parent is not None and not self._knows(update.filters, sender):
            self._asked[update.client, update.moves] = set(update.filters)
            return [Send(self.parent, UpwardUpdate(update))]
        here = update.source == self.base.name
        answer = self.receive_update(update, sender, now) if here else [self.base.envelope(update.source, update)]
        return answer + ([] if self.complete else self._back(CompleteToRendezvous(update)))

    def _knows(self, filters: tuple[Filter, ...], sender: str) -> bool:
        """Is all that this filter lets pass on its way here already?"""
        if not self.complete:
            return all(any(other.covers(filter) for other in self.known) for filter in filters)
        routes = self.base.broker.routes
        assert isinstance(routes, TableRoutes)
        table = routes.subscriptions
        return all(any(table.interfaces(other) - {sender} for other in table.covering(f)) for f in filters)

    def _back(self, message: CompleteToRendezvous) -> list[Send]:
        target = message.update.target
        return [] if target == self.base.name else [Send(self.base.next_hop(target), message)]
