"""`DurableBroker`: a broker that loses nothing it has accepted, whenever it is killed.

What must survive goes two ways. Every event is an *entry* of the log, and with it stands who must get it: sessions and
neighbours, each with the number under which it does. All the rest (sessions, filters, neighbours, how far each has
come) is *rows* of a store. Whoever runs the broker lets it take what has arrived, then `drain`s it, writes entries and
rows, and only then `release`s what follows from them: so nobody hears of anything that a crash could undo.

- A client with a *session* keeps its filters and the deliveries that it has not acknowledged, numbered. What it says
  twice is done once.
- What goes to a neighbour is numbered and kept until the neighbour says that it is safe there. A neighbour that is away
  misses nothing, and what arrives twice is taken once.

Sessions and neighbours are not sent anything from here: they `take` what is released, as fast as they can. A restart is
only a pause. Rows say how things stood at the last `checkpoint` or later, and the log what happened since; to see an
entry twice changes nothing. No I/O here: entries and rows go out as values, and come in again as what was stored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from fieldfare.events import msgpack
from fieldfare.filters import EVERYTHING, parse
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import unnamed
from fieldfare.node import losses, recovery
from fieldfare.node.envelopes import Envelopes
from fieldfare.node.handover import Handovers
from fieldfare.node.replicas import Replicas
from fieldfare.node.state import (
    NEVER,
    Greeting,
    Link,
    Origin,
    Pending,
    Policy,
    Publication,
    RequestRefused,
    Session,
    Step,
    pending_numbers,
    pending_row,
)
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import EntryDetails, JournalEntry, Row, StoredRows, encode_details, replacement_key
from fieldfare.protocol.lineage import MOST, Lineage, extend, still_valid
from fieldfare.protocol.messages import FilterUpdate, Message, Role, Send
from fieldfare.protocol.numbers import NUMBER_LIMIT
from fieldfare.routing.broker import FROM_NEIGHBOURS, Broker
from fieldfare.routing.deduplication import EventId
from fieldfare.routing.routes import LOCAL
from fieldfare.routing.table_routes import TableRoutes

ASIDES: Final = 2000
"""messages that wait for a neighbour and that nobody keeps; beyond so many, what need not be said is not"""

logger = logging.getLogger("fieldfare.node")


class DurableBroker:
    """A broker and what survives of it."""

    def __init__(
        self,
        broker: Broker,
        stored: StoredRows | None = None,
        entries: Iterable[JournalEntry] = (),
        *,
        limit: int = 100_000,
        queue: int = 1_000,
        policy: Policy = "buffer",
        keepers: int = 0,
        secure: bool = False,
        life: str = "",
        doubtful: bool = False,
        now: float = 0.0,
    ) -> None:
        """Let a new broker take up what was stored, with the log from `low_water(stored)` on.

        More than `limit` events never wait for a session: then the oldest are dropped. For a client that is not to be
        remembered it may be fewer (`queue`); and whoever has too many may have to go, if that is the policy. So many
        neighbours are to be `keepers` of each session. If the node is `secure`, sessions only go to their owners. The
        `life` of the log has a name that no other one has: see `lineage`. If it is `doubtful` whether what was stored
        is the latest, programs that start anew get new identities: see `_rename`.
        """
        self.broker = broker
        self.sessions: dict[str, Session] = {}
        self.links: dict[str, Link] = {}
        self.position = 0
        self.changes = 0
        """how often what is wanted may have changed"""
        self.limit = limit
        self.queue = queue
        self.policy = policy
        self.life = life
        self.doubtful = doubtful
        self.now = now
        self.ahead = 0.0
        """seconds that the clock on the wall is ahead of the times that are given here, which never jump"""
        self._entries: list[JournalEntry] = []
        self._rows: list[Row] = []
        self._ready: set[str] = set()
        self._overflowing: set[str] = set()
        self._asides: dict[str, list[bytes]] = {}
        """what need not be kept, for neighbours that can be reached"""
        self.letters = Envelopes(self)
        self.keeping = Replicas(self, keepers)
        self.moving = Handovers(self, secure=secure)
        """sessions on their way from and to other nodes"""
        if stored is not None:
            recovery.restore(self, stored, entries)

    # Steps

    def drain(self) -> Step:
        """What has to be written of all that happened since the last time."""
        self.keeping.step()
        entries, self._entries = self._entries, []
        rows, self._rows = self._rows, []
        ready, self._ready = self._ready, set()
        overflowing, self._overflowing = self._overflowing, set()
        closing, self.moving.closing = self.moving.closing, {}
        return Step(
            entries,
            rows,
            {name: self.sessions[name].count for name in ready if name in self.sessions},
            {name: self.links[name].said for name in ready if name in self.links},
            overflowing,
            closing,
        )

    def release(self, step: Step) -> None:
        """It is written: those whom it concerns may take it."""
        for name, count in step.sessions.items():
            if name in self.sessions:
                self.sessions[name].released = max(self.sessions[name].released, count)
        for name, said in step.neighbours.items():
            if name in self.links:
                self.links[name].released = max(self.links[name].released, said)
                self.links[name].heard = max(self.links[name].heard, self.links[name].taken)

    def checkpoint(self) -> None:
        """Let rows say how things stand, so that the log need not be read from further back."""
        for name, session in self.sessions.items():
            if session.durable:
                self.note_session(name)
        for name in self.links:
            self._note_link(name)
        self.keeping.checkpoint()
        self._rows.append(Row("checkpoint", (), self.position))

    def rewind(self, position: int) -> None:
        """The log has lost its end: forget what stood there, since other events will stand there soon."""
        self.position = position
        for name, session in self.sessions.items():
            for number in [number for number, pending in session.pending.items() if pending.position > position]:
                self._drop(name, session, number)
                session.dropped += 1
        for link in self.links.values():
            link.born, link.low = min(link.born, position), min(link.low, position + 1)

    def low_water(self) -> int:
        """The first position that is still needed."""
        waiting = [_lowest(one) for one in self.sessions.values() if one.durable and one.pending]
        outgoing = [link.low for link in self.links.values() if link.outbox]
        outgoing += [position for link in self.links.values() for position in link.already.values()]
        return min([*waiting, *outgoing, *self.moving.low_water(), *self.keeping.low_water(), self.position + 1])

    @property
    def unwritten(self) -> Sequence[JournalEntry]:
        """Entries that were not drained yet."""
        return self._entries

    def wanted(self) -> set[Filter]:
        """All that clients and neighbours want."""
        routes, everything = self.broker.routes, parse("TRUE")
        filters = {filter for client in self.broker.clients.all.values() for filter in client.subscriptions.values()}
        for neighbour, link in self.links.items():
            if link.role is Role.PARENT or not isinstance(routes, TableRoutes):
                filters.add(everything)
            else:
                filters.update(map(unnamed, routes.filters_of(neighbour)))
        return filters

    # Sessions

    def attach(
        self, name: str, identity: str, now: float, *, durable: bool = True, owner: str = "", known: str = ""
    ) -> Session:
        """A client is there. If there is such a session, it is that one; else a new one with an identity.

        A client that goes on says which identity is `known` to it.
        """
        self.moving.check(name)
        self.moving.stay(name)
        session = self.sessions.get(name)
        if session is None:
            session = self.sessions[name] = Session(identity, durable, owner=owner)
        elif session.restored and known != session.identity:
            self._rename(name, session, identity)
        session.here, session.seen = True, now
        self.begin(session)
        session.durable |= durable
        session.lives = extend(session.lives, self._stay(session), session.count + 1)
        if session.durable:
            self.note_session(name)
        return session

    def void_for(self, name: str, seen: int, known: Lineage) -> int:
        """The first delivery that a client has had, up to a number, and that means another one now; 0 if none does.

        A number that this node has not given yet will mean another one: not even a restart need have been between.
        """
        session, here = self._session(name), self.broker.name
        valid = min(still_valid(seen, known, session.lives), session.count)
        if valid >= seen or session.done >= seen:  # what was acknowledged does not come again, under any number
            return 0
        logger.error("%s went back in time: it has forgotten %d deliveries that %s has had", here, seen - valid, name)
        return valid + 1

    def _rename(self, name: str, session: Session, identity: str) -> None:
        """Give a session that was restored another identity, for a program that does not know how far it had counted.

        The disk may not know either: after a power failure the program would count its events again as earlier ones
        were, and neighbours would take them for those.
        """
        session.moved, session.identity, session.restored = session.mark, identity, False
        session.sequence = 0  # who hears another identity begins with 1
        self.keeping.renew(name)

    def _stay(self, session: Session) -> str:
        """The life in which deliveries are numbered; one more for a session that has been elsewhere in between."""
        return f"{self.life}.{session.moves}" if session.moves else self.life

    @staticmethod
    def begin(session: Session) -> None:
        """Let a new connection have all that is not acknowledged; it may acknowledge what an earlier one took."""
        session.sent = max(session.sent, session.taken)
        session.taken = session.done

    def detach(self, name: str, now: float) -> None:
        """A client is away; if its session does not survive, it is forgotten."""
        session = self.sessions.get(name)
        if session is not None:
            session.here, session.seen = False, now
            if not session.durable:
                self.end(name, now)

    def leave(self, name: str, now: float) -> None:
        """A client ends its session."""
        self.moving.check(name)
        self.moving.stay(name)
        self.end(name, now)

    def end(self, name: str, now: float) -> None:
        """A session is over here."""
        session = self._session(name)
        self.ask_no_more(name, now)
        if session.durable:
            self._rows += [Row(losses.WARNED, (name,))] if session.warned else []
            replayed = [number for number, pending in session.pending.items() if pending.replayed]
            self._rows += [Row("session", (name,)), *(Row("replayed", (name, number)) for number in replayed)]
        del self.sessions[name]
        self.moving.ended(name)
        self.keeping.end(name)

    def ask_no_more(self, name: str, now: float) -> None:
        """A session wants and promises nothing any more."""
        client = self.broker.clients.all.get(name)
        for about in ("subscriptions", "advertisements") if client is not None and self.sessions[name].durable else ():
            self._rows += [Row(about, (name, id)) for id in getattr(client, about)]
        sends = self.broker.receive(m.Leave(), name, now)
        self.changes += 1
        self._say_all(sends)

    def wants(self, name: str) -> tuple[dict[str, str], dict[str, str]]:
        """What a session wants and promises, as texts by id."""
        client = self.broker.clients.get(name)
        subscriptions = {id: str(filter) for id, filter in client.subscriptions.items()}
        return subscriptions, {id: str(filter) for id, filter in client.advertisements.items()}

    def change(self, message: Message, name: str, now: float) -> None:
        """A client changes what it wants or promises: Subscribe, Unsubscribe, Advertise, Unadvertise."""
        self.moving.check(name)
        self.moving.stay(name)  # it may go when the target knows what it wants now
        self.settle(message, name, now)

    def settle(self, message: Message, name: str, now: float) -> None:
        """Let a session want or promise something else, or less."""
        session = self._session(name)
        sends = self.broker.receive(message, name, now)
        for send in sends:
            if isinstance(send.message, m.Refuse):
                raise RequestRefused(send.message.reason)
        self.changes += 1
        self.keeping.changed(name)
        if session.durable:
            self._rows += _filter_row(message, name)
        self._say_all(sends)

    def replay(self, name: str, found: Iterable[Pending]) -> None:
        """Let a session have events that were there before."""
        self.moving.check(name)
        for pending in found:
            self.hold(name, pending._replace(old=True))

    def hold(self, name: str, pending: Pending, number: int = 0) -> None:
        """Let a session have an event of which the log does not say that it does: as the next, or under a number."""
        session = self._session(name)
        session.replays += 1
        if number:
            session.pending[number] = pending._replace(replayed=True)
            self.replace(name, session, number)
        else:
            self._deliver(name, session, pending._replace(replayed=True))
            number = session.count
        if session.durable:
            self._rows.append(Row("replayed", (name, number), pending_row(pending)))

    def acknowledge(self, name: str, number: int) -> None:
        """A client is done with all deliveries up to a number."""
        self.moving.check(name)
        session = self._session(name)
        last = max(session.taken, session.sent)
        if number > last:
            raise RequestRefused(f"delivery {number} was not sent: the last was {last}")
        if number > session.done:
            self._forget(name, session, number)
            self.keeping.acknowledged(name, number)

    def _forget(self, name: str, session: Session, number: int) -> None:
        session.done = number
        if losses.acknowledged(session, number) and session.durable:
            self._rows.append(losses.row(name, session))
        for other in pending_numbers(session, session.oldest, number):
            self._drop(name, session, other)
        session.oldest = max(session.oldest, number + 1)
        if session.durable:
            self.note_session(name)

    def _drop(self, name: str, session: Session, number: int) -> None:
        pending = session.pending.pop(number, None)
        if pending is not None and pending.replayed:
            session.replays -= 1
            if session.durable:
                self._rows.append(Row("replayed", (name, number)))

    def withhold(self, name: str, numbers: Iterable[int]) -> None:
        """Let a session never have some of what waits for it."""
        session = self._session(name)
        for number in numbers:
            self._drop(name, session, number)

    def take(self, name: str, limit: int, now: float) -> list[tuple[int, Pending]]:
        """The next deliveries for a session that is there, at most so many."""
        session = self.sessions[name]
        found: list[tuple[int, Pending]] = []
        for number in pending_numbers(session, max(session.taken + 1, session.oldest), session.released):
            if len(found) == limit:
                return found
            session.taken = number
            pending = session.pending[number]
            if pending.expires > now:
                found.append((number, pending))
        session.taken = max(session.taken, session.released)
        return found

    def expire(self, now: float, life: float) -> list[str]:
        """End the sessions that nobody has come back to for so many seconds, and drop events that are of no use."""
        moving = {*self.moving.arrivals, *self.moving.departures}
        away = {name for name, one in self.sessions.items() if not one.here and now - one.seen > life}
        gone = sorted(away - moving - self.keeping.kept.keys())
        for name in gone:
            self.end(name, now)
        self.keeping.expire(now, life)
        for name, session in self.sessions.items():
            wall = now + self.ahead
            for number in [number for number, pending in session.pending.items() if pending.expires <= wall]:
                self._drop(name, session, number)
        self.moving.expire(now, life)
        return gone

    def _session(self, name: str) -> Session:
        if name not in self.sessions:
            raise RequestRefused(f"there is no session {name}")
        return self.sessions[name]

    def check_same(self, name: str, identity: str) -> None:
        """Complain if a session of this name is not, or not any more, the one that is meant."""
        self.moving.check(name)
        if identity and self._session(name).identity != identity:
            raise RequestRefused(f"the session {name} is over, and there is another one")

    def note_session(self, name: str) -> None:
        """Let a row say how a session stands."""
        one = self.sessions[name]
        low = one.pending[_oldest(one)].position if one.pending else self.position + 1
        row = [
            one.identity,
            one.sequence,
            one.count,
            one.done,
            one.seen,
            low,
            one.dropped,
            one.owner,
            one.moved,
            one.doubt,
            one.moves,
            one.lives,
            one.restored,
        ]
        self._rows.append(Row("session", (name,), row))

    # Events

    def publish(self, publications: Sequence[Publication], now: float) -> list[int | RequestRefused]:
        """Take events of publishers, matched as one batch. For each: up to which number all is safe, or why not."""
        answers: list[int | RequestRefused] = []
        taken: list[tuple[m.Forward, Origin]] = []
        for one in publications:
            session = self.sessions.get(one.session)
            refused = self._why_not(one)
            if session is None or refused is not None:
                answers.append(refused or RequestRefused(f"there is no session {one.session}"))
                continue
            known = session.sequence
            begin = one.number or known + 1
            last = begin + len(one.events) - 1
            origin = Origin(first=max(begin, known + 1), last=last)
            by, here, expires = session.identity, self.broker.name, one.expires or 0.0
            taken += [
                (m.Forward(event, one.session, number, by, here, expires, one.replaces), origin)
                for number, event in enumerate(one.events, begin)
                if number > known
            ]
            session.sequence = max(known, last)
            answers.append(session.sequence)
        self._spread(taken, LOCAL, now)
        return answers

    def _why_not(self, one: Publication) -> RequestRefused | None:
        try:
            self.check_same(one.session, one.identity)
        except RequestRefused as refusal:
            return refusal
        if self.broker.strategy.advertisements is None:
            return None
        if all(self.broker.clients.may_publish(one.session, event) for event in one.events):
            return None
        return RequestRefused("no advertisement of yours promises such an event")

    def _spread(self, taken: Sequence[tuple[m.Forward, Origin]], via: str, now: float) -> None:
        """Log events, with those who must get them."""
        origins = {_id(forward): origin for forward, origin in reversed(taken)}  # of one that is said twice the first
        for forward, clients, neighbours, _ in self.broker.route([forward for forward, _ in taken], via, now):
            self.position += 1
            to = []
            key = replacement_key(forward.publisher, forward.replaces)
            for name, ids in clients.items():
                session = self.sessions[name]
                self._deliver(name, session, Pending(self.position, tuple(ids), forward.expires or NEVER, replaces=key))
                self.moving.delivered(name, session.count, _id(forward))
                self.keeping.delivered(name, session.count, _id(forward))
                if session.durable:
                    to.append((name, session.mark, session.count, ids))
            out = [(neighbour, self._put(neighbour, self.position)) for neighbour in neighbours]
            number, after, first, last = origins[_id(forward)]
            options = forward.expires, forward.replaces, first, last, forward.tag
            rest = EntryDetails(forward.by, forward.source, via, number, after, to, out, *options)
            event, when = msgpack.encode(forward.event), now + self.ahead
            self._entries.append(
                JournalEntry(self.position, when, forward.publisher, forward.sequence, event, encode_details(rest))
            )

    def append(self, now: float, publisher: str, sequence: int, event: bytes, rest: bytes) -> int:
        """Log an event that is not on its way to anybody else; gives its position."""
        self.position += 1
        self._entries.append(JournalEntry(self.position, now + self.ahead, publisher, sequence, event, rest))
        return self.position

    def _deliver(self, name: str, session: Session, pending: Pending) -> None:
        stay = self._stay(session)
        begins = not session.lives or session.lives[-1][0] != stay
        session.lives = extend(session.lives, stay, session.count + 1)
        session.count += 1
        session.pending[session.count] = pending
        if begins and session.durable:  # not before: the row says from where on the log is for the session
            self.note_session(name)
        self.replace(name, session, session.count)
        self._ready.add(name)
        if len(session.pending) > (self.limit if session.durable or self.policy == "buffer" else self.queue):
            self._drop(name, session, _oldest(session))
            session.dropped += 1
            if self.policy == "disconnect":
                self._overflowing.add(name)

    def replace(self, name: str, session: Session, number: int) -> None:
        """Of events that replace each other, only the last waits, unless an earlier one is on its way already.

        An old one replaces nothing: another subscription of the session may wait for what came before it.
        """
        pending = session.pending[number]
        if pending.replaces is None:
            return
        before = [other for other in session.replaceable.get(pending.replaces, ()) if other in session.pending]
        for other in before if not pending.old else ():
            if session.taken < other < number:
                self._drop(name, session, other)
        session.replaceable[pending.replaces] = [*(one for one in before if one in session.pending), number]
        if len(session.replaceable) > 2 * len(session.pending) + 100:
            known = session.replaceable.items()
            session.replaceable = {key: some for key, some in known if any(one in session.pending for one in some)}

    # Neighbours

    def connect(
        self,
        neighbour: str,
        role: Role,
        now: float,
        *,
        mine: str = "",
        theirs: str = "",
        known: Lineage = (),
        id: str = "",
    ) -> None:
        """A neighbour is known from now on, whether it can be reached or not.

        Both ends must begin to count together, so both have a name for the link. If one of them has forgotten it, both
        begin anew: what such a neighbour was still to get is dropped, since it has forgotten what it wanted, too.
        """
        self.disconnect(neighbour, now)
        sends = self.broker.receive(m.Connect(role), neighbour, now)
        self.links[neighbour] = Link(role, mine=mine, theirs=theirs, born=self.position, known=known[-MOST:], id=id)
        self.lives_of(neighbour)
        self._say_all(sends)
        self.keeping.welcome(neighbour)

    def disconnect(self, neighbour: str, now: float) -> None:
        """A neighbour is known no more, and what it was still to get is dropped."""
        if neighbour in self.links:
            self.changes += 1
            sends = self.broker.receive(m.Disconnect(), neighbour, now)
            link = self.links.pop(neighbour)
            waiting = sum(isinstance(what, int) for what in link.outbox.values())
            if waiting:
                logger.error("%d events that waited here for the node %s are dropped with its link", waiting, neighbour)
            self.letters.forget(neighbour, link.outbox.values())
            self.keeping.parted(neighbour)
            self._rows.append(Row("neighbour", (neighbour,)))
            self._rows += [Row("outbox", (neighbour, number)) for number in link.outbox]
            self._rows += [Row("told", (neighbour, about, text)) for about, told in link.told.items() for text in told]
            self._say_all(sends)

    def introduce(self) -> None:
        """After a restart: say to every neighbour all that it must know. It may be worded otherwise than before."""
        self.moving.resume()
        for neighbour in self.links:
            self._introduce(neighbour)

    def _introduce(self, neighbour: str) -> None:
        for about in self.broker.routes.subjects():
            self.say(neighbour, FilterUpdate(self.broker.routes.exports(neighbour, about), about=about, all=True))

    def lives_of(self, neighbour: str) -> Lineage:
        """The lives in which our messages to a neighbour are numbered; the present one is among them from now on."""
        link = self.links[neighbour]
        link.lives = extend(link.lives, self.life, link.said + 1)
        self._note_link(neighbour)
        return link.lives

    def meet_again(self, neighbour: str, greeting: Greeting, id: str) -> int:
        """Go on with a neighbour that knows the link from before; gives the number of our last message that it has.

        If either node has gone back in time, since it lost the end of its log or got an earlier copy of it, both find
        the last number that means the same to them.
        """
        link, here = self._link(neighbour), self.broker.name
        valid = min(still_valid(greeting.heard, greeting.knows, link.lives), link.said)
        if valid < greeting.heard:
            count = greeting.heard - valid
            logger.error("%s went back in time: it has forgotten %d messages that %s has heard", here, count, neighbour)
        if valid < link.safe:
            count = link.safe - valid
            logger.error("%s went back in time: it has forgotten %d messages of %s", neighbour, count, here)
            self._introduce(neighbour)  # some of them were about filters
        sent = max(valid, link.safe)
        self.received(neighbour, sent)
        taken = max(min(still_valid(link.taken, link.known, greeting.lives), greeting.said), greeting.first - 1)
        if taken != link.taken:
            before, after = link.taken + 1, taken + 1
            logger.error("%s goes on with message %d of %s, not with %d", here, after, neighbour, before)
            link.taken = link.heard = taken
            link.changed, link.since, link.already = min(link.changed, taken), self.position, {}
        link.known, link.id = greeting.lives[-MOST:], id
        self._note_link(neighbour)
        return sent

    def hear(self, neighbour: str, first: int, messages: Sequence[bytes], now: float) -> int:
        """Take what a neighbour says, once; events that follow each other are matched as one batch. Gives how many."""
        link = self._link(neighbour)
        count = 0
        events: list[tuple[m.Forward, Origin]] = []
        for number, data in enumerate(messages, first):
            if number <= link.taken:
                continue
            if number != link.taken + 1:
                raise ValueError(f"{neighbour} has left out its message {link.taken + 1}")
            message = self._read(neighbour, number, data)
            if number in link.already:
                del link.already[number]
            elif isinstance(message, m.Forward):
                events.append((message, Origin(number, link.changed)))
                count += 1
            else:
                self._spread(events, neighbour, now)
                events = []
                if isinstance(message, m.Envelope):
                    self._open(message, neighbour, now)
                else:
                    message = self._heed(neighbour, number, message, now)
                if isinstance(message, FilterUpdate):
                    self._note_told(message, neighbour)
                link.changed = number
                self.changes += 1
            link.taken = number
            self._ready.add(neighbour)
        self._spread(events, neighbour, now)
        if link.taken != link.heard:
            self._note_link(neighbour)
        return count

    def _read(self, neighbour: str, number: int, data: bytes) -> Message:
        """A message of a neighbour. One that cannot be read is set aside: refused, it would come again for ever."""
        try:
            message, unreadable = wire.decode_leniently(data)
            if not isinstance(message, (*FROM_NEIGHBOURS, m.Envelope)):  # a client may have the neighbour's name
                raise ValueError(f"{type(message).__name__} is nothing that nodes say to each other")
            if isinstance(message, m.Forward) and not 0 <= message.sequence < NUMBER_LIMIT:
                raise ValueError(f"{message.sequence} is no number of an event")
        except ValueError as error:
            logger.error("message %d of %s cannot be read, and is set aside: %s", number, neighbour, error)
            self._rows.append(Row("unreadable", (neighbour, number), data))
            return FilterUpdate()
        for text in unreadable:
            logger.error("%s asks for what cannot be read here, so it gets everything: %.300s", neighbour, text)
        return message

    def _heed(self, neighbour: str, number: int, message: Message, now: float) -> Message:
        """Let the broker take what a neighbour says. What it does not take is set aside, for the same reason.

        A neighbour that asks for what it may not ask for gets everything, and misses nothing. Gives what was taken.
        """
        instead = [FilterUpdate((EVERYTHING,), about=message.about)] if isinstance(message, FilterUpdate) else []
        for one in (message, *instead):
            try:
                self._say_all(self.broker.receive(one, neighbour, now))
                return one
            except Exception as error:  # noqa: BLE001 - whatever it is, it would be the same the next time
                logger.error("message %d of %s cannot be taken, and is set aside: %s", number, neighbour, error)
                self._rows.append(Row("unreadable", (neighbour, number), wire.encode(message)))
        return FilterUpdate()

    def regain(self, neighbour: str, now: float) -> None:
        """A neighbour can be reached."""
        self._asides[neighbour] = []
        self._say_all(self.broker.link_up(neighbour, now))

    def lose(self, neighbour: str, now: float) -> None:
        """For now it cannot."""
        self._asides.pop(neighbour, None)
        self._say_all(self.broker.link_down(neighbour, now))

    def hear_aside(self, neighbour: str, data: bytes, now: float) -> None:
        """Take what a neighbour says that nobody keeps."""
        try:
            message, _ = wire.decode_leniently(data)
            if not isinstance(message, m.ControlMessage):
                raise ValueError(f"{type(message).__name__} must have a number")
            self._say_all(self.broker.receive(message, neighbour, now))
        except Exception as error:  # noqa: BLE001 - it may get lost; but the link must not go with it
            logger.error("%s says aside what cannot be taken: %s", neighbour, error)

    def asides(self, neighbour: str) -> list[bytes]:
        """What a neighbour is to hear that nobody keeps; it is forgotten here."""
        if not self._asides.get(neighbour):
            return []
        taken, self._asides[neighbour] = self._asides[neighbour], []
        return taken

    def tick(self, now: float) -> None:
        """Let time pass."""
        self._say_all(self.broker.tick(now))

    def _open(self, parcel: m.Envelope, via: str, now: float) -> None:
        try:
            self.moving.receive(parcel, now, via)
        except Exception:  # the link must not come to a halt: it would bring the same again and again
            logger.exception("a letter from %s could not be taken", parcel.origin)

    def received(self, neighbour: str, number: int) -> None:
        """A neighbour has all that we said up to a number."""
        link = self._link(neighbour)
        if number > link.said:
            raise ValueError(f"{neighbour} has received {number}, but {link.said} was the last that was said")
        for done in range(link.safe + 1, number + 1):
            what = link.outbox.pop(done)
            if isinstance(what, int):
                link.low = what + 1
            else:
                self._rows.append(Row("outbox", (neighbour, done)))
        if number > link.safe:
            link.safe = number
            self._note_link(neighbour)

    def outgoing(self, neighbour: str, after: int, limit: int) -> list[tuple[int, bytes | int]]:
        """What a neighbour is to hear next: messages, or the positions of events."""
        link = self.links[neighbour]
        last = min(link.released, after + limit)
        return [(number, link.outbox[number]) for number in range(max(after, link.safe) + 1, last + 1)]

    def _link(self, neighbour: str) -> Link:
        if neighbour not in self.links:
            raise ValueError(f"{neighbour} is no neighbour of {self.broker.name}")
        return self.links[neighbour]

    def _note_link(self, neighbour: str) -> None:
        link = self.links[neighbour]
        low = min([link.low if link.outbox else self.position + 1, *link.already.values()])
        counts = [link.said, link.taken, link.changed, link.safe]
        about = link.lives, link.known, link.since, link.id
        row = [link.role.value, low, link.mine, link.theirs, counts, link.born, *about]
        self._rows.append(Row("neighbour", (neighbour,), row))

    def _note_told(self, tell: FilterUpdate, neighbour: str) -> None:
        """Keep what a neighbour said, as it was said.

        A filter that a larger one made the table forget stays in the rows. After a restart that means some events too
        many for the neighbour, until it says all again; it never means one too few.
        """
        told = self.links[neighbour].told.setdefault(tell.about, {})
        for text in list(told) if tell.all else map(str, tell.removed):
            if told.pop(text, text) is None:
                self._rows.append(Row("told", (neighbour, tell.about, text)))
        for text in map(str, tell.added):
            told[text] = None
            self._rows.append(Row("told", (neighbour, tell.about, text), 1))

    def _say_all(self, sends: Iterable[Send]) -> None:
        for send in sends:
            if isinstance(send.message, m.ControlMessage):
                self._whisper(send.to, send.message)
            elif send.to in self.links:
                self.say(send.to, send.message)

    def _whisper(self, neighbour: str, aside: m.ControlMessage) -> None:
        waiting = self._asides.get(neighbour)
        # What is told must not get lost while the link is up: the neighbour would not know what to send.
        if waiting is not None and (len(waiting) < ASIDES or isinstance(aside.content, FilterUpdate)):
            waiting.append(wire.encode(aside))
            self._ready.add(neighbour)

    def wake(self, name: str) -> None:
        """Let a session take what it has, once that is written."""
        self._ready.add(name)

    def keep(self, row: Row) -> None:
        """Let a row be written."""
        self._rows.append(row)

    def say(self, neighbour: str, message: Message) -> None:
        """Say something to a neighbour, behind all that was said to it before."""
        data = wire.encode(message)
        self._rows.append(Row("outbox", (neighbour, self._put(neighbour, data)), data))
        self._note_link(neighbour)

    def _put(self, neighbour: str, what: bytes | int) -> int:
        link = self.links[neighbour]
        if not link.outbox:
            link.low = self.position
        if not link.lives or link.lives[-1][0] != self.life:
            self.lives_of(neighbour)
        link.said += 1
        link.outbox[link.said] = what
        self._ready.add(neighbour)
        return link.said


def _id(forward: m.Forward) -> EventId:
    return forward.publisher, forward.by, forward.sequence


def _oldest(session: Session) -> int:
    """The first number that is pending.

    Not `next(iter(session.pending))`, which has to look over all that was removed at the front.
    """
    if session.oldest not in session.pending:
        session.oldest = next(pending_numbers(session, session.oldest, session.count), session.oldest)
    return session.oldest


def _lowest(session: Session) -> int:
    """The lowest position that is pending; old events may stand behind newer ones."""
    if session.replays:
        return min(pending.position for pending in session.pending.values())
    return session.pending[_oldest(session)].position


def _filter_row(message: Message, name: str) -> list[Row]:
    match message:
        case m.Subscribe(id=id, filter=filter):
            return [Row("subscriptions", (name, id), str(filter))]
        case m.Unsubscribe(id=id):
            return [Row("subscriptions", (name, id))]
        case m.Advertise(id=id, filter=filter):
            return [Row("advertisements", (name, id), str(filter))]
        case m.Unadvertise(id=id):
            return [Row("advertisements", (name, id))]
    return []
