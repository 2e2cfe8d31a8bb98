"""`AccessServer`: a server of clients, with their sessions.

A session comes to the server of its client. The target calls the session from its last visit (`SessionRequest`), gets
its filters (`SessionOffer`), and sends the new filters to channels. When the filters are in force, the target buffers
events for the session, and tells the source how far to go so that no event is missing in between (`SessionFetch`). The
source goes so far, hands the session over (`SessionTransfer`), and withdraws the filters that no other client there
needs. If filters of other clients cover those of the session at both ends, no channel gets a message.

A session belongs to a domain: `name@domain`, or else the domain of the server where the session began. An access server
of another domain serves the session as a member of the session's domain, while there are such sessions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from fieldfare.mobility.channels import messages as c
from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.member import farther, is_new
from fieldfare.mobility.channels.session_requests import SessionRequests
from fieldfare.mobility.channels.sessions import SharedSession
from fieldfare.mobility.channels.visits import ClientRequest, DomainService, SessionVisit
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.messages import Message, Send

_WARM = "warm "
_NOWHERE = c.Attach()


class AccessServer(SessionRequests):
    """A server of clients and their sessions."""

    wakes: float | None = None

    def __init__(self, name: str, domains: Iterable[Domain]) -> None:
        """Make a server without clients. The first domain is its own; the others are for sessions from elsewhere."""
        super().__init__(name, domains)
        self._domain_of = {server: domain.name for domain in self.domains.values() for server in domain.servers}
        self._who: dict[str, tuple[str, str]] = {}
        """the session and application of each client"""
        self._current: dict[str, SessionVisit] = {}
        """visits of sessions that are here or on their way, and not called elsewhere"""
        self._visits: dict[str, SessionVisit] = {}
        """all visits with a known number, by their keys"""
        self._called: dict[str, str] = {}
        """visits that other servers have called before they were known here"""
        self._coming: dict[str, dict[int, SessionVisit]] = {}
        """visits without a number yet, by calls"""
        self._calls = 0

    # The machine

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a message and return the messages to send."""
        handler = _HANDLERS.get(type(message))
        if handler is not None:
            sends = handler(self, message, sender)
        elif sender in self._domain_of:
            sends = self._service(self._domain_of[sender]).member.receive(message, sender)
        elif isinstance(message, c.CausalMessage | c.InterestConfirmation):
            sends = self._service(message.domain).member.receive(message, sender)
        else:
            sends = self._hear(message, sender)
        return sends + self._go_on() + self._report_interest()

    def tick(self, now: float) -> list[Send]:
        """Return nothing: a server has no timers."""
        return []

    def snapshot(self) -> bytes:
        """Return the sessions that are here, encoded."""
        sessions = {key: visit.session for key, visit in self._visits.items() if visit.session is not None}
        return msgspec.msgpack.encode(sessions, enc_hook=wire.to_wire)

    @property
    def updates(self) -> int:
        """The number of filter changes sent to channels."""
        return sum(service.member.updates for service in self.services.values())

    @property
    def sessions(self) -> Mapping[str, SharedSession]:
        """The sessions that are here, by name."""
        return {name: visit.session for name, visit in self._current.items() if visit.session is not None}

    # Clients

    def _hear(self, message: Message, client: str) -> list[Send]:
        if isinstance(message, c.Attach) or client not in self._who:
            attach = message if isinstance(message, c.Attach) else c.Attach()
            self._who[client] = attach.session or client, attach.app
            if attach is not message:
                return self._hear(attach, client) + self._hear(message, client)
        name, app = self._who[client]
        if isinstance(message, m.Leave):
            del self._who[client], self._at[client]
        visit, sends = self._current.get(name), list[Send]()
        if visit is None or (isinstance(message, c.Attach) and message.source not in ("", self.name)):
            if visit is not None:
                visit.clients.pop(client, None)  # the client was elsewhere, so this visit will be called from there
            visit, come = self._begin(name, client, message if isinstance(message, c.Attach) else _NOWHERE)
            sends.append(come)
        if isinstance(message, c.Attach):
            visit.arrivals.add((client, message.moves))
            self._at[client] = visit
        visit.waiting.append(ClientRequest(client, app, message))
        return sends + (self._serve(visit) if visit.serving else [])

    def _begin(self, name: str, client: str = "", attach: c.Attach = _NOWHERE) -> tuple[SessionVisit, Send]:
        """Call a session here. Its home must not get the call before it knows of the client's previous visit."""
        visit = self._current[name] = SessionVisit(name, self._service_of(name))
        self._calls += 1
        self._coming.setdefault(name, {})[self._calls] = visit
        come = c.SessionCall(name, self.name, self._calls, (client, attach.moves - 1))
        return visit, self._ask(come) if attach.source in ("", self.name) else Send(attach.source, come)

    def _ask(self, come: c.SessionCall) -> Send:
        return Send(self._service_of(come.session).member.domain.home(come.session), come)

    def _pass_on(self, message: c.SessionCall, sender: str) -> list[Send]:
        """Pass the call for a session on, behind the visit from which its client left."""
        ending = [visit for visit in (self._current.get(message.session),) if visit and visit.ending and visit.waiting]
        for visit in (*self._coming.get(message.session, {}).values(), *ending):
            if message.after in visit.arrivals:
                visit.behind.append(message)
                return []
        return [self._ask(message)]

    def _send_away(self, message: c.MoveClients, sender: str) -> list[Send]:
        leaving = [visit for visit in self._current.values() if visit.clients][: message.sessions]
        return [Send(client, c.MoveRequest(message.to)) for visit in leaving for client in visit.clients]

    # Events

    def _go_on(self) -> list[Send]:
        """Give sessions the events that have arrived, and advance visits as far as possible."""
        sends = self._drain()
        while more := [send for visit in list(self._moving.values()) for send in self._advance(visit)]:
            sends += more + self._drain()
        return sends

    def _drain(self) -> list[Send]:
        sends: list[Send] = []
        for service in self.services.values():
            member = service.member
            while member.arrived or member.past or member.news:
                arrived, member.arrived = member.arrived, []
                for mark, event in arrived:
                    sends += self._arrive(service, mark, event)
                past, member.past = member.past, []
                for channel, one in past:
                    self._remember(channel, one)
                news, member.news = member.news, []
                for channel, proxy in news:
                    if proxy.number:
                        sends += member.confirm(
                            proxy.server, c.InterestConfirmation(member.domain.name, channel, proxy.number)
                        )
        return sends

    def _arrive(self, service: DomainService, mark: tuple[str, int], event: m.Forward) -> list[Send]:
        sends: list[Send] = []
        for key, ids in service.clients.match(event.event).items():
            visit = self._visits.get(key)
            if visit is None:
                continue  # the session is only expected
            if visit.session is None or visit.awaits_past:
                if visit.fetching or visit.awaits_past:
                    visit.buffered.append((mark, event))
            elif is_new(mark, visit.floor):
                self._keep(visit, event, tuple(ids))
                sends += self._deliver(visit)
        return sends

    def _remember(self, channel: str, past: c.PastEvents) -> None:
        visit = self._visits.get(past.session)
        if visit is not None and (channel, past.number) in visit.questions:
            visit.past.update(past.events)
            visit.questions.discard((channel, past.number))

    # Coming

    def _came(self, message: c.SessionCallReply, sender: str) -> list[Send]:
        visit = self._coming[message.session].pop(message.call)
        if not self._coming[message.session]:
            del self._coming[message.session]
        visit.number, visit.source = message.visit, message.source
        self._visits[visit.key] = visit
        sends = [Send(sender, come) for come in visit.behind]
        if visit.source:
            sends.append(Send(visit.source, c.SessionRequest(visit.name, visit.number - 1)))
        else:
            sends += visit.service.member.learn(message.context)
            visit.session = SharedSession()
            sends += self._serve(visit)
        if visit.key in self._called:
            sends += self._call(visit, self._called.pop(visit.key))
        return sends

    def _offered(self, message: c.SessionOffer, sender: str) -> list[Send]:
        visit = self._visits[f"{message.session}#{message.visit}"]
        sends = self._apply_all(visit.service, visit.key, message)
        filters = [*message.subscriptions.values(), *message.advertisements.values()]
        visit.tickets = visit.service.member.tickets(filters)
        self._moving[visit.key] = visit
        return sends

    def _shipped(self, message: c.SessionTransfer, sender: str) -> list[Send]:
        visit = self._visits[f"{message.session}#{message.visit}"]
        visit.session, visit.floor, visit.tickets = message.value, message.position, None
        sends = visit.service.member.learn(message.context)
        sends += self._withdraw_all(visit.service, _WARM + visit.name)
        for mark, event in visit.buffered:
            if is_new(mark, visit.floor):
                self._keep(visit, event)
        visit.buffered = []
        sends += self._serve(visit)
        return sends + self._call(visit, visit.target) if visit.target else sends

    def _ended(self, message: c.SessionEndReply, sender: str) -> list[Send]:
        """Forget a session after its end, unless a client has sent a request meanwhile."""
        visit = self._visits.pop(f"{message.session}#{message.visit}")
        if self._current.get(visit.name) is visit:
            del self._current[visit.name]
        return self._hand_on(visit)

    def _hand_on(self, visit: SessionVisit) -> list[Send]:
        """Give the requests after the end of a session to the session that follows."""
        if not visit.waiting:
            return []
        sends: list[Send] = []
        if visit.name not in self._coming:
            sends.append(self._begin(visit.name)[1])
        follower = next(iter(self._coming[visit.name].values()))
        follower.waiting, visit.waiting = [*visit.waiting, *follower.waiting], []
        follower.behind, visit.behind = [*visit.behind, *follower.behind], []
        follower.arrivals |= visit.arrivals
        self._at.update({client: follower for client, one in self._at.items() if one is visit})
        return sends

    # Going

    def _requested(self, message: c.SessionRequest, sender: str) -> list[Send]:
        key = f"{message.session}#{message.visit}"
        if key not in self._visits:
            self._called[key] = sender
            return []
        return self._call(self._visits[key], sender)

    def _call(self, visit: SessionVisit, target: str) -> list[Send]:
        """Start to move a session elsewhere: clients that are still here must follow, or call the session back."""
        visit.target = target
        clients = [*visit.clients, *(request.client for request in visit.waiting)]
        if self._current.get(visit.name) is visit:
            del self._current[visit.name]
        visit.clients = {}
        for client in clients:
            self._watching.pop(client, None)
        if visit.ending and visit.waiting:
            return self._hand_on(visit) + self._call(visit, target)
        if visit.session is not None:
            filters = [*visit.session.subscriptions.values(), *visit.session.advertisements.values()]
            visit.tickets = visit.service.member.tickets(filters)
            self._moving[visit.key] = visit
        return [Send(client, c.SessionMoved(visit.name, target)) for client in dict.fromkeys(clients)]

    def _fetched(self, message: c.SessionFetch, sender: str) -> list[Send]:
        self._visits[f"{message.session}#{message.visit}"].cut = message.cut
        return []

    def _advance(self, visit: SessionVisit) -> list[Send]:
        """Do the next step of a move, if its conditions hold."""
        member = visit.service.member
        if visit.awaits_past:
            done, sends = self._look_back(visit)
            return sends + self._advance(visit) if done else sends
        if visit.ending and not visit.target:
            if not member.idle(visit.name):
                return []
            del self._moving[visit.key]
            return [Send(member.domain.home(visit.name), c.SessionEnd(visit.name, visit.number, member.context()))]
        if visit.tickets is not None and not member.in_force(visit.tickets):
            return []
        if visit.session is None:
            if visit.tickets is None or visit.fetching:
                return []
            visit.fetching = True
            del self._moving[visit.key]
            return [Send(visit.source, c.SessionFetch(visit.name, visit.number - 1, member.cut(visit.source)))]
        if not visit.target:
            self._moving.pop(visit.key, None)
            return []
        if not visit.offered:
            if not member.idle(visit.name):
                return []
            visit.offered = True
            session = visit.session
            filters = dict(session.subscriptions), dict(session.advertisements)
            return [Send(visit.target, c.SessionOffer(visit.name, visit.number + 1, *filters))]
        if visit.cut is None:
            return []
        reached, sends = member.reach(visit.cut)
        return sends + self._ship(visit) if reached else sends

    def _ship(self, visit: SessionVisit) -> list[Send]:
        assert visit.session is not None
        member = visit.service.member
        position = farther(member.position(), visit.floor)
        shipped = c.SessionTransfer(visit.name, visit.number + 1, visit.session, position, member.context())
        expecting = self._warmed.pop(visit.name, set()) - {visit.target}
        del self._visits[visit.key], self._moving[visit.key]
        return [
            Send(visit.target, shipped),
            *self._withdraw_all(visit.service, visit.key),
            *(Send(other, c.CancelSession(visit.name)) for other in sorted(expecting)),
        ]

    def _look_back(self, visit: SessionVisit) -> tuple[bool, list[Send]]:
        """Put past and present events in order, when all past events are here and the present has reached them."""
        if visit.questions:
            return False, []
        reached, sends = visit.service.member.reach({"": max(visit.past, default=0)})
        if reached:
            both = {**visit.past, **{stamp: event for (_, stamp), event in visit.buffered}}
            visit.awaits_past, visit.buffered = False, []
            for stamp in sorted(both):
                self._keep(visit, both[stamp])
            sends += self._deliver(visit)
        return reached, sends

    def _ignore(self, message: Message, sender: str) -> list[Send]:
        """Ignore links, because servers reach each other directly."""
        return []

    # Expecting

    def _warm(self, message: c.PrepareSession, sender: str) -> list[Send]:
        return self._apply_all(self._service_of(message.session), _WARM + message.session, message)

    def _cool(self, message: c.CancelSession, sender: str) -> list[Send]:
        return self._withdraw_all(self._service_of(message.session), _WARM + message.session)


_HANDLERS: dict[type[Message], Callable[..., list[Send]]] = {
    c.SessionCall: AccessServer._pass_on,
    c.SessionCallReply: AccessServer._came,
    c.SessionEndReply: AccessServer._ended,
    c.SessionRequest: AccessServer._requested,
    c.SessionOffer: AccessServer._offered,
    c.SessionFetch: AccessServer._fetched,
    c.SessionTransfer: AccessServer._shipped,
    c.PrepareSession: AccessServer._warm,
    c.CancelSession: AccessServer._cool,
    c.MoveClients: AccessServer._send_away,
    m.Connect: AccessServer._ignore,
    m.Disconnect: AccessServer._ignore,
}
