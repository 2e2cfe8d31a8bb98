"""`Desk`: what clients can say to a session that is here, and how they get their events.

Clients are sessions' applications; what they want and promise is the session's, and channels hear of it through the
place of its domain. How sessions come and go is not known here: see `access`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.channels import messages as c
from fieldfare.mobility.channels.causal import Causal
from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.member import Member
from fieldfare.mobility.channels.ordered import Ordered
from fieldfare.mobility.channels.sessions import SharedSession
from fieldfare.mobility.channels.visits import Place, Said, Visit
from fieldfare.mobility.messages import Acknowledge, MoveOut
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import About, Message, Send


def member_of(name: str, domain: Domain) -> Member:
    """A member of a domain, of its kind."""
    return Ordered(name, domain) if domain.ordered else Causal(name, domain)


class Desk:
    """Serves clients whose sessions are here."""

    def __init__(self, name: str, domains: Iterable[Domain]) -> None:
        """No clients yet. The first domain is its own; it knows of the others, should their sessions come."""
        self.name = name
        self.domains = {domain.name: domain for domain in domains}
        self.own = next(iter(self.domains))
        self.places: dict[str, Place] = {}
        self._at: dict[str, Visit] = {}
        """where each client has come to last: an earlier stay must not talk to it, not knowing what it has missed"""
        self._moving: dict[str, Visit] = {}
        """stays that wait for something to happen"""
        self._warmed: dict[str, set[str]] = {}
        """where sessions are expected"""
        self._watching: dict[str, tuple[Place, frozenset[Filter] | None]] = {}
        """clients that want to know what is wanted, and what they know"""
        self._count = 0

    def _place(self, domain: str) -> Place:
        if domain not in self.places:
            known = self.domains[domain]
            self.places[domain] = Place(member_of(self.name, known))
        return self.places[domain]

    def _place_of(self, session: str) -> Place:
        return self._place(session.rpartition("@")[2] if "@" in session else self.own)

    def _serve(self, stay: Visit) -> list[Send]:
        """Do what clients have said, and then give them what there is for them."""
        sends: list[Send] = []
        while stay.waiting and stay.serving:
            said = stay.waiting.pop(0)
            handler = _FROM_CLIENTS.get(type(said.message))
            if handler is None:
                sends.append(Send(said.client, m.Refuse(f"{type(said.message).__name__} is nothing to say here")))
            else:
                sends += handler(self, said.message, said, stay)
        return sends + self._deliver(stay)

    def _deliver(self, stay: Visit) -> list[Send]:
        session, sends = stay.session, list[Send]()
        if session is None or stay.target:
            return []
        for client in [client for client in stay.clients if self._at.get(client) is stay]:
            for delivery in session.after(stay.sent[client]):
                stay.sent[client] = delivery.number
                labels = session.labels(delivery)
                if labels:
                    sends.append(Send(client, msgspec.structs.replace(delivery, subscriptions=labels)))
        return sends

    def _attach(self, message: c.Attach, said: Said, stay: Visit) -> list[Send]:
        assert stay.session is not None
        for other in [other for other, app in stay.clients.items() if app == message.app]:
            del stay.clients[other]
        stay.session.enter(message.app, message.taken)
        stay.clients[said.client] = message.app
        stay.sent[said.client] = stay.session.apps[message.app]
        return []

    def _move_out(self, message: MoveOut, said: Said, stay: Visit) -> list[Send]:
        assert stay.session is not None
        if not message.target:
            stay.clients.pop(said.client, None)
            self._watching.pop(said.client, None)
            return []
        self._warmed.setdefault(stay.name, set()).add(message.target)
        session = stay.session
        return [Send(message.target, c.Warm(stay.name, dict(session.subscriptions), dict(session.advertisements)))]

    def _acknowledge(self, message: Acknowledge, said: Said, stay: Visit) -> list[Send]:
        assert stay.session is not None
        stay.session.done(said.app, message.number)
        return []

    def _subscribe(self, message: m.Subscribe | c.Recall, said: Said, stay: Visit) -> list[Send]:
        return self._set("subscriptions", message.id, message.filter, said, stay)

    def _unsubscribe(self, message: m.Unsubscribe, said: Said, stay: Visit) -> list[Send]:
        return self._set("subscriptions", message.id, None, said, stay)

    def _advertise(self, message: m.Advertise, said: Said, stay: Visit) -> list[Send]:
        return self._set("advertisements", message.id, message.filter, said, stay)

    def _unadvertise(self, message: m.Unadvertise, said: Said, stay: Visit) -> list[Send]:
        return self._set("advertisements", message.id, None, said, stay)

    def _set(self, about: About, id: str, filter: Filter | None, said: Said, stay: Visit) -> list[Send]:
        assert stay.session is not None
        if filter is not None and filter.is_empty:
            return [Send(said.client, m.Refuse("no event can match this filter", id))]
        kept: dict[str, Filter] = getattr(stay.session, about)
        if filter is not None:
            kept[id] = filter
        else:
            kept.pop(id, None)
        return self._tell(stay.place, about, stay.key, id, filter)

    def _tell(self, place: Place, about: About, key: str, id: str, filter: Filter | None) -> list[Send]:
        if about == "advertisements" and not place.member.domain.advertisements:
            return []
        return place.member.tell(place.clients.set(about, key, id, filter))

    def _tell_all(self, place: Place, key: str, message: c.Offer | c.Warm) -> list[Send]:
        wishes = [self._tell(place, "subscriptions", key, id, one) for id, one in message.subscriptions.items()]
        promises = [self._tell(place, "advertisements", key, id, one) for id, one in message.advertisements.items()]
        return [send for sends in (*wishes, *promises) for send in sends]

    def _tell_no_more(self, place: Place, key: str) -> list[Send]:
        return [send for tell in place.clients.leave(key) for send in place.member.tell(tell)]

    def _recall(self, message: c.Recall, said: Said, stay: Visit) -> list[Send]:
        assert stay.session is not None
        if stay.session.last or stay.recalling or not stay.place.member.domain.ordered:
            return [Send(said.client, m.Refuse("there is no past for a session that has got events", message.id))]
        sends = self._subscribe(message, said, stay)
        stay.recalling, stay.past = True, {}
        questions, stay.questions = stay.place.member.recall(stay.key, message.filter, message.last)
        self._moving[stay.key] = stay
        return sends + questions

    def _publish(self, message: m.Publish, said: Said, stay: Visit) -> list[Send]:
        assert stay.session is not None
        member, session, by = stay.place.member, stay.session, ""
        promised = session.advertisements.values()
        if member.domain.advertisements and not any(filter.matches(message.event) for filter in promised):
            return [Send(said.client, m.Refuse("no advertisement of yours promises such an event"))]
        sequence = message.sequence
        if sequence is None:
            self._count += 1
            sequence, by = self._count, self.name
        elif sequence <= session.published.get(said.client, -1):
            return []
        else:
            session.published[said.client] = sequence
        return member.publish(stay.name, m.Forward(message.event, said.client, sequence, by, self.name))

    def _watch(self, message: c.Watch, said: Said, stay: Visit) -> list[Send]:
        self._watching[said.client] = stay.place, None
        member = stay.place.member
        return [send for channel in member.domain.channels for send in member.promise_all(channel)]

    def _tell_watching(self) -> list[Send]:
        """Let clients know what anybody wants, if it is something else than they know."""
        sends = []
        for client, (place, known) in self._watching.items():
            wanted = None if place.is_learning else frozenset(place.wanted())
            if wanted is not None and wanted != known:
                self._watching[client] = place, wanted
                sends.append(Send(client, c.Wanted(tuple(sorted(wanted, key=str)))))
        return sends

    def _leave(self, message: m.Leave, said: Said, stay: Visit) -> list[Send]:
        assert stay.session is not None
        stay.session.leave(said.app)
        self._watching.pop(said.client, None)
        stay.clients.pop(said.client, None)
        if stay.session.apps:
            return []
        stay.session, stay.recalling = SharedSession(), False
        if not stay.waiting and not stay.target:  # else somebody goes on with a new one
            stay.ending = True
            self._moving[stay.key] = stay
        return self._tell_no_more(stay.place, stay.key)

    def _keep(self, stay: Visit, event: m.Forward, ids: tuple[str, ...] = ()) -> None:
        assert stay.session is not None
        delivery = m.Deliver(event.event, event.publisher, event.sequence, ids, event.by)
        stay.session.keep(delivery, stay.place.member.domain.limit)


_FROM_CLIENTS: dict[type[Message], Callable[..., list[Send]]] = {
    c.Attach: Desk._attach,
    MoveOut: Desk._move_out,
    Acknowledge: Desk._acknowledge,
    m.Subscribe: Desk._subscribe,
    m.Unsubscribe: Desk._unsubscribe,
    m.Advertise: Desk._advertise,
    m.Unadvertise: Desk._unadvertise,
    m.Publish: Desk._publish,
    m.Leave: Desk._leave,
    c.Recall: Desk._recall,
    c.Watch: Desk._watch,
}
