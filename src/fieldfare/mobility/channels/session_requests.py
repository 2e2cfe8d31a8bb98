"""`SessionRequests`: the requests of clients to a session that is here, and the deliveries to clients.

Clients are applications of a session; their filters belong to the session, and channels learn them through the service
of the session's domain. The moves of sessions are in `access`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.channels import messages as c
from fieldfare.mobility.channels.causal import CausalMember
from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.member import ChannelMember
from fieldfare.mobility.channels.ordered import OrderedMember
from fieldfare.mobility.channels.sessions import SharedSession
from fieldfare.mobility.channels.visits import ClientRequest, DomainService, SessionVisit
from fieldfare.mobility.messages import Acknowledge, MoveOut
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import About, Message, Send


def member_of(name: str, domain: Domain) -> ChannelMember:
    """Return a member of a domain, ordered or causal as the domain says."""
    return OrderedMember(name, domain) if domain.ordered else CausalMember(name, domain)


class SessionRequests:
    """Serves the clients of sessions that are here."""

    def __init__(self, name: str, domains: Iterable[Domain]) -> None:
        """Make a server without clients. The first domain is its own; the others are for sessions from elsewhere."""
        self.name = name
        self.domains = {domain.name: domain for domain in domains}
        self.own = next(iter(self.domains))
        self.services: dict[str, DomainService] = {}
        self._at: dict[str, SessionVisit] = {}
        """the last visit of each client: an earlier visit must not deliver, because it does not know the missed
        events"""
        self._moving: dict[str, SessionVisit] = {}
        """visits that wait for a condition"""
        self._warmed: dict[str, set[str]] = {}
        """servers at which sessions are expected"""
        self._watching: dict[str, tuple[DomainService, frozenset[Filter] | None]] = {}
        """clients that watch the interest, with the last reported interest"""
        self._count = 0

    def _service(self, domain: str) -> DomainService:
        if domain not in self.services:
            known = self.domains[domain]
            self.services[domain] = DomainService(member_of(self.name, known))
        return self.services[domain]

    def _service_of(self, session: str) -> DomainService:
        return self._service(session.rpartition("@")[2] if "@" in session else self.own)

    def _serve(self, visit: SessionVisit) -> list[Send]:
        """Process waiting requests of clients, and then deliver events."""
        sends: list[Send] = []
        while visit.waiting and visit.serving:
            request = visit.waiting.pop(0)
            handler = _FROM_CLIENTS.get(type(request.message))
            if handler is None:
                sends.append(
                    Send(request.client, m.Refuse(f"{type(request.message).__name__} is no request to a session"))
                )
            else:
                sends += handler(self, request.message, request, visit)
        return sends + self._deliver(visit)

    def _deliver(self, visit: SessionVisit) -> list[Send]:
        session, sends = visit.session, list[Send]()
        if session is None or visit.target:
            return []
        for client in [client for client in visit.clients if self._at.get(client) is visit]:
            for delivery in session.after(visit.sent[client]):
                visit.sent[client] = delivery.number
                ids = session.matching_ids(delivery)
                if ids:
                    sends.append(Send(client, msgspec.structs.replace(delivery, subscriptions=ids)))
        return sends

    def _attach(self, message: c.Attach, request: ClientRequest, visit: SessionVisit) -> list[Send]:
        assert visit.session is not None
        for other in [other for other, app in visit.clients.items() if app == message.app]:
            del visit.clients[other]
        visit.session.attach(message.app, message.received)
        visit.clients[request.client] = message.app
        visit.sent[request.client] = visit.session.apps[message.app]
        return []

    def _move_out(self, message: MoveOut, request: ClientRequest, visit: SessionVisit) -> list[Send]:
        assert visit.session is not None
        if not message.target:
            visit.clients.pop(request.client, None)
            self._watching.pop(request.client, None)
            return []
        self._warmed.setdefault(visit.name, set()).add(message.target)
        session = visit.session
        return [
            Send(
                message.target, c.PrepareSession(visit.name, dict(session.subscriptions), dict(session.advertisements))
            )
        ]

    def _acknowledge(self, message: Acknowledge, request: ClientRequest, visit: SessionVisit) -> list[Send]:
        assert visit.session is not None
        visit.session.acknowledge_as(request.app, message.number)
        return []

    def _subscribe(
        self, message: m.Subscribe | c.SubscribePast, request: ClientRequest, visit: SessionVisit
    ) -> list[Send]:
        return self._set("subscriptions", message.id, message.filter, request, visit)

    def _unsubscribe(self, message: m.Unsubscribe, request: ClientRequest, visit: SessionVisit) -> list[Send]:
        return self._set("subscriptions", message.id, None, request, visit)

    def _advertise(self, message: m.Advertise, request: ClientRequest, visit: SessionVisit) -> list[Send]:
        return self._set("advertisements", message.id, message.filter, request, visit)

    def _unadvertise(self, message: m.Unadvertise, request: ClientRequest, visit: SessionVisit) -> list[Send]:
        return self._set("advertisements", message.id, None, request, visit)

    def _set(
        self, about: About, id: str, filter: Filter | None, request: ClientRequest, visit: SessionVisit
    ) -> list[Send]:
        assert visit.session is not None
        if filter is not None and filter.is_empty:
            return [Send(request.client, m.Refuse("no event can match this filter", id))]
        kept: dict[str, Filter] = getattr(visit.session, about)
        if filter is not None:
            kept[id] = filter
        else:
            kept.pop(id, None)
        return self._apply(visit.service, about, visit.key, id, filter)

    def _apply(self, service: DomainService, about: About, key: str, id: str, filter: Filter | None) -> list[Send]:
        if about == "advertisements" and not service.member.domain.advertisements:
            return []
        return service.member.apply(service.clients.set(about, key, id, filter))

    def _apply_all(self, service: DomainService, key: str, message: c.SessionOffer | c.PrepareSession) -> list[Send]:
        subscribed = [self._apply(service, "subscriptions", key, id, one) for id, one in message.subscriptions.items()]
        advertised = [
            self._apply(service, "advertisements", key, id, one) for id, one in message.advertisements.items()
        ]
        return [send for sends in (*subscribed, *advertised) for send in sends]

    def _withdraw_all(self, service: DomainService, key: str) -> list[Send]:
        return [send for update in service.clients.leave(key) for send in service.member.apply(update)]

    def _recall(self, message: c.SubscribePast, request: ClientRequest, visit: SessionVisit) -> list[Send]:
        assert visit.session is not None
        if visit.session.last or visit.awaits_past or not visit.service.member.domain.ordered:
            return [Send(request.client, m.Refuse("there is no past for a session that has got events", message.id))]
        sends = self._subscribe(message, request, visit)
        visit.awaits_past, visit.past = True, {}
        questions, visit.questions = visit.service.member.request_past(visit.key, message.filter, message.last)
        self._moving[visit.key] = visit
        return sends + questions

    def _publish(self, message: m.Publish, request: ClientRequest, visit: SessionVisit) -> list[Send]:
        assert visit.session is not None
        member, session, by = visit.service.member, visit.session, ""
        advertised = session.advertisements.values()
        if member.domain.advertisements and not any(filter.matches(message.event) for filter in advertised):
            return [Send(request.client, m.Refuse("none of your advertisements matches the event"))]
        sequence = message.sequence
        if sequence is None:
            self._count += 1
            sequence, by = self._count, self.name
        elif sequence <= session.published.get(request.client, -1):
            return []
        else:
            session.published[request.client] = sequence
        return member.publish(visit.name, m.Forward(message.event, request.client, sequence, by, self.name))

    def _watch(self, message: c.WatchInterest, request: ClientRequest, visit: SessionVisit) -> list[Send]:
        self._watching[request.client] = visit.service, None
        member = visit.service.member
        return [send for channel in member.domain.channels for send in member.advertise_all(channel)]

    def _report_interest(self) -> list[Send]:
        """Send watching clients the interest, if the interest has changed."""
        sends = []
        for client, (service, known) in self._watching.items():
            wanted = None if service.awaits_interest else frozenset(service.wanted())
            if wanted is not None and wanted != known:
                self._watching[client] = service, wanted
                sends.append(Send(client, c.InterestReply(tuple(sorted(wanted, key=str)))))
        return sends

    def _leave(self, message: m.Leave, request: ClientRequest, visit: SessionVisit) -> list[Send]:
        assert visit.session is not None
        visit.session.detach(request.app)
        self._watching.pop(request.client, None)
        visit.clients.pop(request.client, None)
        if visit.session.apps:
            return []
        visit.session, visit.awaits_past = SharedSession(), False
        if not visit.waiting and not visit.target:  # otherwise a client goes on with a new session
            visit.ending = True
            self._moving[visit.key] = visit
        return self._withdraw_all(visit.service, visit.key)

    def _keep(self, visit: SessionVisit, event: m.Forward, ids: tuple[str, ...] = ()) -> None:
        assert visit.session is not None
        delivery = m.Deliver(event.event, event.publisher, event.sequence, ids, event.by)
        visit.session.store(delivery, visit.service.member.domain.limit)


_FROM_CLIENTS: dict[type[Message], Callable[..., list[Send]]] = {
    c.Attach: SessionRequests._attach,
    MoveOut: SessionRequests._move_out,
    Acknowledge: SessionRequests._acknowledge,
    m.Subscribe: SessionRequests._subscribe,
    m.Unsubscribe: SessionRequests._unsubscribe,
    m.Advertise: SessionRequests._advertise,
    m.Unadvertise: SessionRequests._unadvertise,
    m.Publish: SessionRequests._publish,
    m.Leave: SessionRequests._leave,
    c.SubscribePast: SessionRequests._recall,
    c.WatchInterest: SessionRequests._watch,
}
