"""`AccessServer`: where clients are, with their sessions.

A session comes to where its client is. The target calls it from its last stay (`Request`), is told what it wants
(`Offer`), and tells channels what they do not know yet. When that is in force it puts events aside for the session, and
says how far the source must get so that nothing is missing in between (`Fetch`). The source gets there, hands the
session over (`Ship`), and takes back what nobody else there needs. If filters of others cover those of the session
at both ends, no channel hears anything.

Sessions belong to a domain: `name@domain`, or else that of the server where they began. An access server of another
domain serves them as a member of theirs, for as long as it has any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from fieldfare.mobility.channels import messages as c
from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.member import farther, is_new
from fieldfare.mobility.channels.session_requests import Desk
from fieldfare.mobility.channels.sessions import SharedSession
from fieldfare.mobility.channels.visits import Place, Said, Visit
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.messages import Message, Send

_WARM = "warm "
_NOWHERE = c.Attach()


class AccessServer(Desk):
    """A server of clients."""

    wakes: float | None = None

    def __init__(self, name: str, domains: Iterable[Domain]) -> None:
        """No clients yet. The first domain is its own; it knows of the others, should their sessions come."""
        super().__init__(name, domains)
        self._domain_of = {server: domain.name for domain in self.domains.values() for server in domain.servers}
        self._who: dict[str, tuple[str, str]] = {}
        """the session and application of each client"""
        self._current: dict[str, Visit] = {}
        """of sessions that are here or on their way, and not called elsewhere"""
        self._stays: dict[str, Visit] = {}
        """all whose number is known, by their keys"""
        self._called: dict[str, str] = {}
        """stays that others have called before we knew of them"""
        self._coming: dict[str, dict[int, Visit]] = {}
        """stays that have no number yet, by calls"""
        self._calls = 0

    # The machine

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Take a message; gives what is to be sent."""
        handler = _HANDLERS.get(type(message))
        if handler is not None:
            sends = handler(self, message, sender)
        elif sender in self._domain_of:
            sends = self._place(self._domain_of[sender]).member.receive(message, sender)
        elif isinstance(message, c.Carry | c.Heard):
            sends = self._place(message.domain).member.receive(message, sender)
        else:
            sends = self._hear(message, sender)
        return sends + self._go_on() + self._tell_watching()

    def tick(self, now: float) -> list[Send]:
        """Nothing is ever due."""
        return []

    def snapshot(self) -> bytes:
        """The sessions that are here."""
        sessions = {key: stay.session for key, stay in self._stays.items() if stay.session is not None}
        return msgspec.msgpack.encode(sessions, enc_hook=wire.to_wire)

    @property
    def updates(self) -> int:
        """How often channels were told of a change of what is wanted or promised here."""
        return sum(place.member.updates for place in self.places.values())

    @property
    def sessions(self) -> Mapping[str, SharedSession]:
        """The sessions that are here."""
        return {name: stay.session for name, stay in self._current.items() if stay.session is not None}

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
        stay, sends = self._current.get(name), list[Send]()
        if stay is None or (isinstance(message, c.Attach) and message.source not in ("", self.name)):
            if stay is not None:
                stay.clients.pop(client, None)  # it was elsewhere, so this stay will be called from there
            stay, come = self._begin(name, client, message if isinstance(message, c.Attach) else _NOWHERE)
            sends.append(come)
        if isinstance(message, c.Attach):
            stay.visits.add((client, message.moves))
            self._at[client] = stay
        stay.waiting.append(Said(client, app, message))
        return sends + (self._serve(stay) if stay.serving else [])

    def _begin(self, name: str, client: str = "", attach: c.Attach = _NOWHERE) -> tuple[Visit, Send]:
        """Call a session here. Its home must not hear of that before it hears of where the client was before."""
        stay = self._current[name] = Visit(name, self._place_of(name))
        self._calls += 1
        self._coming.setdefault(name, {})[self._calls] = stay
        come = c.Come(name, self.name, self._calls, (client, attach.moves - 1))
        return stay, self._ask(come) if attach.source in ("", self.name) else Send(attach.source, come)

    def _ask(self, come: c.Come) -> Send:
        return Send(self._place_of(come.session).member.domain.home(come.session), come)

    def _pass_on(self, message: c.Come, sender: str) -> list[Send]:
        """A client that was here has gone on."""
        ending = [stay for stay in (self._current.get(message.session),) if stay and stay.ending and stay.waiting]
        for stay in (*self._coming.get(message.session, {}).values(), *ending):
            if message.after in stay.visits:
                stay.behind.append(message)
                return []
        return [self._ask(message)]

    def _send_away(self, message: c.SendAway, sender: str) -> list[Send]:
        leaving = [stay for stay in self._current.values() if stay.clients][: message.sessions]
        return [Send(client, c.Go(message.to)) for stay in leaving for client in stay.clients]

    # Events

    def _go_on(self) -> list[Send]:
        """Give sessions the events that have arrived, and let stays come and go as far as they can."""
        sends = self._drain()
        while more := [send for stay in list(self._moving.values()) for send in self._advance(stay)]:
            sends += more + self._drain()
        return sends

    def _drain(self) -> list[Send]:
        sends: list[Send] = []
        for place in self.places.values():
            member = place.member
            while member.arrived or member.past or member.news:
                arrived, member.arrived = member.arrived, []
                for mark, event in arrived:
                    sends += self._arrive(place, mark, event)
                past, member.past = member.past, []
                for channel, one in past:
                    self._remember(channel, one)
                news, member.news = member.news, []
                for channel, proxy in news:
                    if proxy.number:
                        sends += member.confirm(proxy.server, c.Heard(member.domain.name, channel, proxy.number))
        return sends

    def _arrive(self, place: Place, mark: tuple[str, int], event: m.Forward) -> list[Send]:
        sends: list[Send] = []
        for key, ids in place.clients.match(event.event).items():
            stay = self._stays.get(key)
            if stay is None:
                continue  # it is only expected
            if stay.session is None or stay.recalling:
                if stay.fetching or stay.recalling:
                    stay.aside.append((mark, event))
            elif is_new(mark, stay.floor):
                self._keep(stay, event, tuple(ids))
                sends += self._deliver(stay)
        return sends

    def _remember(self, channel: str, past: c.Past) -> None:
        stay = self._stays.get(past.session)
        if stay is not None and (channel, past.number) in stay.questions:
            stay.past.update(past.events)
            stay.questions.discard((channel, past.number))

    # Coming

    def _came(self, message: c.Came, sender: str) -> list[Send]:
        stay = self._coming[message.session].pop(message.call)
        if not self._coming[message.session]:
            del self._coming[message.session]
        stay.number, stay.source = message.stay, message.source
        self._stays[stay.key] = stay
        sends = [Send(sender, come) for come in stay.behind]
        if stay.source:
            sends.append(Send(stay.source, c.Request(stay.name, stay.number - 1)))
        else:
            sends += stay.place.member.learn(message.context)
            stay.session = SharedSession()
            sends += self._serve(stay)
        if stay.key in self._called:
            sends += self._call(stay, self._called.pop(stay.key))
        return sends

    def _offered(self, message: c.Offer, sender: str) -> list[Send]:
        stay = self._stays[f"{message.session}#{message.stay}"]
        sends = self._tell_all(stay.place, stay.key, message)
        filters = [*message.subscriptions.values(), *message.advertisements.values()]
        stay.tickets = stay.place.member.tickets(filters)
        self._moving[stay.key] = stay
        return sends

    def _shipped(self, message: c.Ship, sender: str) -> list[Send]:
        stay = self._stays[f"{message.session}#{message.stay}"]
        stay.session, stay.floor, stay.tickets = message.value, message.position, None
        sends = stay.place.member.learn(message.context)
        sends += self._tell_no_more(stay.place, _WARM + stay.name)
        for mark, event in stay.aside:
            if is_new(mark, stay.floor):
                self._keep(stay, event)
        stay.aside = []
        sends += self._serve(stay)
        return sends + self._call(stay, stay.target) if stay.target else sends

    def _ended(self, message: c.Ended, sender: str) -> list[Send]:
        """Nobody knows of it any more, unless somebody has spoken in the meantime."""
        stay = self._stays.pop(f"{message.session}#{message.stay}")
        if self._current.get(stay.name) is stay:
            del self._current[stay.name]
        return self._hand_on(stay)

    def _hand_on(self, stay: Visit) -> list[Send]:
        """What clients have said after the end of a session is for the one that follows it."""
        if not stay.waiting:
            return []
        sends: list[Send] = []
        if stay.name not in self._coming:
            sends.append(self._begin(stay.name)[1])
        follower = next(iter(self._coming[stay.name].values()))
        follower.waiting, stay.waiting = [*stay.waiting, *follower.waiting], []
        follower.behind, stay.behind = [*stay.behind, *follower.behind], []
        follower.visits |= stay.visits
        self._at.update({client: follower for client, one in self._at.items() if one is stay})
        return sends

    # Going

    def _requested(self, message: c.Request, sender: str) -> list[Send]:
        key = f"{message.session}#{message.stay}"
        if key not in self._stays:
            self._called[key] = sender
            return []
        return self._call(self._stays[key], sender)

    def _call(self, stay: Visit, target: str) -> list[Send]:
        """A session is wanted elsewhere: clients that are still here must follow it, or call it back."""
        stay.target = target
        clients = [*stay.clients, *(said.client for said in stay.waiting)]
        if self._current.get(stay.name) is stay:
            del self._current[stay.name]
        stay.clients = {}
        for client in clients:
            self._watching.pop(client, None)
        if stay.ending and stay.waiting:
            return self._hand_on(stay) + self._call(stay, target)
        if stay.session is not None:
            wishes = [*stay.session.subscriptions.values(), *stay.session.advertisements.values()]
            stay.tickets = stay.place.member.tickets(wishes)
            self._moving[stay.key] = stay
        return [Send(client, c.Gone(stay.name, target)) for client in dict.fromkeys(clients)]

    def _fetched(self, message: c.Fetch, sender: str) -> list[Send]:
        self._stays[f"{message.session}#{message.stay}"].cut = message.cut
        return []

    def _advance(self, stay: Visit) -> list[Send]:
        """The next step of a move, if it is time for it."""
        member = stay.place.member
        if stay.recalling:
            done, sends = self._look_back(stay)
            return sends + self._advance(stay) if done else sends
        if stay.ending and not stay.target:
            if not member.idle(stay.name):
                return []
            del self._moving[stay.key]
            return [Send(member.domain.home(stay.name), c.End(stay.name, stay.number, member.context()))]
        if stay.tickets is not None and not member.in_force(stay.tickets):
            return []
        if stay.session is None:
            if stay.tickets is None or stay.fetching:
                return []
            stay.fetching = True
            del self._moving[stay.key]
            return [Send(stay.source, c.Fetch(stay.name, stay.number - 1, member.cut(stay.source)))]
        if not stay.target:
            self._moving.pop(stay.key, None)
            return []
        if not stay.offered:
            if not member.idle(stay.name):
                return []
            stay.offered = True
            session = stay.session
            wishes = dict(session.subscriptions), dict(session.advertisements)
            return [Send(stay.target, c.Offer(stay.name, stay.number + 1, *wishes))]
        if stay.cut is None:
            return []
        reached, sends = member.reach(stay.cut)
        return sends + self._ship(stay) if reached else sends

    def _ship(self, stay: Visit) -> list[Send]:
        assert stay.session is not None
        member = stay.place.member
        position = farther(member.position(), stay.floor)
        shipped = c.Ship(stay.name, stay.number + 1, stay.session, position, member.context())
        expecting = self._warmed.pop(stay.name, set()) - {stay.target}
        del self._stays[stay.key], self._moving[stay.key]
        return [
            Send(stay.target, shipped),
            *self._tell_no_more(stay.place, stay.key),
            *(Send(other, c.Cool(stay.name)) for other in sorted(expecting)),
        ]

    def _look_back(self, stay: Visit) -> tuple[bool, list[Send]]:
        """Once all of the past is here, and the present has reached it, put both in order."""
        if stay.questions:
            return False, []
        reached, sends = stay.place.member.reach({"": max(stay.past, default=0)})
        if reached:
            both = {**stay.past, **{stamp: event for (_, stamp), event in stay.aside}}
            stay.recalling, stay.aside = False, []
            for stamp in sorted(both):
                self._keep(stay, both[stamp])
            sends += self._deliver(stay)
        return reached, sends

    def _ignore(self, message: Message, sender: str) -> list[Send]:
        """Servers reach each other directly: links mean nothing."""
        return []

    # Expecting

    def _warm(self, message: c.Warm, sender: str) -> list[Send]:
        return self._tell_all(self._place_of(message.session), _WARM + message.session, message)

    def _cool(self, message: c.Cool, sender: str) -> list[Send]:
        return self._tell_no_more(self._place_of(message.session), _WARM + message.session)


_HANDLERS: dict[type[Message], Callable[..., list[Send]]] = {
    c.Come: AccessServer._pass_on,
    c.Came: AccessServer._came,
    c.Ended: AccessServer._ended,
    c.Request: AccessServer._requested,
    c.Offer: AccessServer._offered,
    c.Fetch: AccessServer._fetched,
    c.Ship: AccessServer._shipped,
    c.Warm: AccessServer._warm,
    c.Cool: AccessServer._cool,
    c.SendAway: AccessServer._send_away,
    m.Connect: AccessServer._ignore,
    m.Disconnect: AccessServer._ignore,
}
