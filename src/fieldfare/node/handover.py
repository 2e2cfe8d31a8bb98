"""`Handovers`: sessions that come from other nodes, or go there. What nodes say then stands in `protocol.handover`.

A session that comes is in two parts for a while: what its old node sends, and *aside*, under an identity of its own,
what arrives here meanwhile. When all of it is here they become one. Like everything else of the broker this is rows
and entries: a node that is killed goes on where it was.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from fieldfare.events import msgpack
from fieldfare.events.limits import EventError
from fieldfare.node import losses
from fieldfare.node.security.names import check_session
from fieldfare.node.security.tickets import Pass, first_pass
from fieldfare.node.state import INTERNAL, NEVER, Pending, RequestRefused, Session, pending_numbers
from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import (
    EntryDetails,
    JournalEntry,
    Row,
    StoredRows,
    details_of,
    encode_details,
    handed_over,
    is_handed_over,
    replacement_key,
)
from fieldfare.protocol.lineage import MOST
from fieldfare.routing.deduplication import EventId

if TYPE_CHECKING:
    from fieldfare.node.durable_broker import DurableBroker

Where: TypeAlias = Literal["here", "coming", "going", "unknown"]


logger = logging.getLogger("fieldfare.node")


class Unsettled(RequestRefused):
    """The session is on its way: ask again where it will be. Nobody is told so, since the connection ends anyway."""


class NotYet(RequestRefused):
    """It cannot be done now, but perhaps later, or elsewhere."""


class Arrival(msgspec.Struct):
    """A session that comes."""

    ticket: str
    source: str
    owner: str | None
    since: int = 0
    """no event that is for it stands in the log up to here"""
    session: Session | None = None
    """as far as it is here; None: the source has not answered"""
    keys: dict[int, EventId] = {}
    """of what is kept aside, by number"""
    onwards: tuple[str, str, str | None] | None = None
    """the ticket and the name of a node that asked for it meanwhile, and for whom"""
    later: list[tuple[Pending, EventId]] = []
    """what the log says that it got when it was here, though no row says that it was"""

    @property
    def aside(self) -> str:
        """The mark of what is kept aside. The log may know of an earlier attempt that left no rows."""
        return f"{self.ticket}/{self.since}"

    def here(self, position: int) -> str:
        """The mark of the session when all of it is here."""
        return f"{self.ticket}//{position}"


class Departure(msgspec.Struct):
    """A session that goes."""

    ticket: str
    target: str
    since: int
    ready: bool = False
    """the target has asked for all that it wants: it cannot stay"""
    frozen: bool = False
    """it gets nothing here any more"""
    carried: int = 0
    """the number of the last delivery that was sent"""
    had: dict[tuple[str, str], int] = {}
    """by publisher: its last event that the session got since it is going"""


class Handovers:
    """The sessions of a broker that are on their way, and the ways to other nodes."""

    def __init__(self, broker: DurableBroker, *, secure: bool = False) -> None:
        """Nothing moves yet."""
        self._broker = broker
        self._secure = secure
        self.arrivals: dict[str, Arrival] = {}
        self.departures: dict[str, Departure] = {}
        self.gone: dict[str, tuple[str, float]] = {}
        """where sessions went, and when"""
        self.refused: dict[tuple[str, str | None], str] = {}
        """why sessions that were asked for do not come, by name and owner"""
        self.closing: dict[str, str] = {}
        """sessions whose connections must end in this step, and where they go"""
        self.passes: dict[str, Pass] = {}
        """of clients that follow their sessions here"""
        self._anew: set[str] = set()
        """sessions that nobody had, until their clients come"""

    # For whoever has a client here

    def where(self, name: str) -> Where:
        """Is a session here?"""
        if name in self.arrivals:
            return "coming"
        if name in self.departures and self.departures[name].ready:
            return "going"
        return "here" if name in self._broker.sessions and name not in self._broker.keeping.kept else "unknown"

    def source(self, name: str) -> str:
        """The node that a session comes from; or this one, if it is about to go."""
        return self.arrivals[name].source if name in self.arrivals else self._broker.broker.name

    def claim(
        self,
        name: str,
        fresh: str,
        now: float,
        *,
        at: str = "",
        identity: str = "",
        moves: int = 0,
        owner: str = "",
    ) -> Session | None:
        """A client is here that was at another node, or nowhere. Gives its session, or None while that is on its way.

        A `fresh` name serves as the identity of a session that begins, or as the ticket of one that comes. Of a client
        that knows it, the `identity` says which session of this name is meant, and `moves` which of two of the same:
        one that moved less often than the client knows is what was left of it at a node that failed.
        """
        asking = owner if self._secure else None
        if (name, asking) in self.refused:
            raise RequestRefused(self.refused.pop((name, asking)))
        here, elsewhere = self._broker.broker.name, at not in ("", self._broker.broker.name)
        session = self._broker.sessions[name] if self.where(name) == "here" else None
        doubtful = elsewhere and name not in self._anew  # else nobody has it, and it would be asked for again for ever
        if session is not None and doubtful and identity not in ("", session.identity) and self._is_unused(name):
            self._broker.end(name, now)  # its client dialled here once, and did not wait for the answer
            session = None
        if session is not None and doubtful and identity:
            if session.identity != identity:
                raise RequestRefused(f"{here} has another session {name}: leave it, or use another name")
            if session.moves < moves:
                self._broker.end(name, now)
                session = None
        if session is not None:
            return self._attach(name, fresh, now, owner, identity)
        if self.where(name) == "unknown":
            kept = self._broker.keeping.kept.get(name)
            source = at if elsewhere else self.gone.get(name, ("", 0.0))[0]
            source = source or (kept.node if kept is not None else "")
            if not source:
                return self._attach(name, fresh, now, owner, identity)
            if not self._broker.letters.knows(source):
                raise NotYet(f"{here} knows no way to the node {source}, which has the session {name}")
            self.ask(name, source, fresh, asking)
        return None

    def _is_unused(self, name: str) -> bool:
        """Whether a session holds nothing that anybody could miss."""
        session, client = self._broker.sessions[name], self._broker.broker.clients.all.get(name)
        asks = client is not None and (client.subscriptions or client.advertisements)
        return not (session.here or session.sequence or session.count or asks)

    def _attach(self, name: str, fresh: str, now: float, owner: str, known: str) -> Session:
        if name not in self._broker.keeping.copies:
            self._broker.keeping.changed(name)
        return self._broker.attach(name, fresh, now, owner=owner, known=known)

    def ask(self, name: str, source: str, ticket: str, owner: str | None) -> None:
        """Let a session come from another node."""
        if self.where(name) != "unknown":
            return
        self.refused.pop((name, owner), None)
        self.arrivals[name] = Arrival(ticket, source, owner, self._broker.position)
        self._note_arrival(name)
        self._post(source, h.Come(name, ticket, owner))

    def take_over(self, name: str, keeper: str, ticket: str, now: float) -> None:
        """The node of a session that should come does not answer: let it come from a keeper, or ask the node again."""
        arrival = self.arrivals.get(name)
        if arrival is None or not (keeper == self._broker.broker.name or self._broker.letters.knows(keeper)):
            return  # clients say who their keepers are, and a letter to nobody would wait for ever
        if arrival.session is not None:  # it has answered, but that was all: what came is in the copy too
            self._discard(name, arrival, now)
            arrival = Arrival(ticket, keeper, arrival.owner, self._broker.position, onwards=arrival.onwards)
            self.arrivals[name] = arrival
        arrival.source = keeper
        self._note_arrival(name)
        if keeper != self._broker.broker.name:
            self._post(keeper, h.Come(name, arrival.ticket, arrival.owner, take_over=True))
        elif name in self._broker.keeping.kept:
            self._broker.keeping.take_over(name)
            self._arrived(name, now)

    def give_up(self, name: str) -> None:
        """The client that asked for a session did not wait for it. If it is on its way, it comes all the same."""
        arrival = self.arrivals.get(name)
        if arrival is not None and arrival.session is None and arrival.onwards is None:
            self._post(arrival.source, h.Cancel(name, arrival.ticket))
            del self.arrivals[name]
            self._keep("arrival", name, None)

    def resume(self) -> None:
        """After a restart nobody waits here for a session that has not begun to come."""
        for name in list(self.arrivals):
            self.give_up(name)

    def stay(self, name: str) -> None:
        """A client is here, so its session does not go, unless it has gone already."""
        departure = self.departures.get(name)
        if departure is not None and not departure.ready:
            self._cancel(name, departure)

    def check(self, name: str) -> None:
        """Complain if a session cannot be used, because it goes, or is not here."""
        going = name in self.departures and self.departures[name].ready
        if going or name in self.arrivals or name in self._broker.keeping.kept:
            raise Unsettled(f"the session {name} is on its way")

    # Letters

    def _post(self, to: str, word: h.AnyWord) -> None:
        self._broker.letters.post(to, h.encode(word))

    def receive(self, parcel: m.Envelope, now: float, via: str = "") -> None:
        """A letter is here: for this node, or for another one."""
        if parcel.to != self._broker.broker.name:
            self._broker.letters.forward(parcel, via)
            return
        other, keeping = parcel.origin, self._broker.keeping
        match h.decode(parcel.content):
            case h.Come(session=name, ticket=ticket, owner=owner, take_over=take_over):
                mine = name in keeping.kept and name not in self.arrivals
                if take_over and mine and not (self._secure and keeping.kept[name].owner != owner):
                    keeping.take_over(name)
                    self._is_here(name)
                self._come(name, ticket, other, owner)
            case h.Offer(session=name, ticket=ticket, owner=owner):
                check_session(name)
                self.ask(name, other, ticket, owner)
            case h.Going(keep=True) as going:
                check_session(going.session)
                keeping.keep(going, other, now)
            case h.Going() as going:
                self._going(going, other, now)
            case h.Vouch() as vouch:
                arrival = self._arrival(vouch)
                if arrival is not None and arrival.session is not None and arrival.session.owner == vouch.owner:
                    self.passes[vouch.session] = first_pass(vouch, now)
            case h.Ready(session=name, ticket=ticket):
                if not keeping.ready(name, ticket, other):
                    self._ready(name, ticket)
            case h.Carry() as carry:
                keeping.carry(carry, now)
                self._carry(carry, now)
            case h.Done() as done:
                keeping.done(done, now)
            case h.Lost(session=name, identity=identity):
                if keeping.lost(name, identity, other, now):
                    self._lost(name, other, now)
            case h.Moved() as moved:
                self._moved(moved, now)
            case h.Elsewhere() as elsewhere:
                self._elsewhere(elsewhere, now)
            case h.Cancel(session=name, ticket=ticket):
                self._cancelled(name, ticket, now)

    def vouch(self, vouch: h.Vouch) -> None:
        """Let the node where a session goes know who its client is."""
        departure = self.departures.get(vouch.session)
        if departure is not None and departure.ticket == vouch.ticket:
            self._post(departure.target, vouch)

    def offer(self, name: str, target: str, ticket: str) -> None:
        """Let another node have a session, with its client, if it wants it."""
        self._post(target, h.Offer(name, ticket, self._broker.sessions[name].owner))

    # Where it is

    def _lost(self, name: str, keeper: str, now: float) -> None:
        """It is here no more."""
        if self.departures.pop(name, None) is not None:
            self._keep("departure", name, None)
        self.closing[name] = keeper
        self.gone[name] = keeper, now
        self._keep("gone", name, [keeper, now])

    def _come(self, name: str, ticket: str, target: str, owner: str | None) -> None:
        arrival, departure = self.arrivals.get(name), self.departures.get(name)
        session, kept = self._broker.sessions.get(name), self._broker.keeping.kept.get(name)
        if arrival is not None:  # it is not here yet: it goes on when it is
            if arrival.onwards is not None:
                self._post(arrival.onwards[1], h.Elsewhere(name, arrival.onwards[0], target))
            arrival.onwards = ticket, target, owner
            self._note_arrival(name)
        elif departure is not None and departure.ready:
            self._post(target, h.Elsewhere(name, ticket, departure.target))
        elif kept is not None:
            self._post(target, h.Elsewhere(name, ticket, kept.node))
        elif session is None or not session.durable or name.startswith(INTERNAL):
            self._post(target, h.Elsewhere(name, ticket, self.gone.get(name, ("", 0.0))[0]))
        elif session.owner != owner and (self._secure or owner is not None):
            self._post(target, h.Elsewhere(name, ticket, refused=f"the session {name} belongs to somebody else"))
        else:
            if departure is not None:
                self._cancel(name, departure)
            self.departures[name] = Departure(ticket, target, self._broker.position)
            self._note_departure(name)
            wants, promises = self._broker.wants(name)
            self._post(target, h.Going(name, ticket, session.identity, session.owner, wants, promises))

    def _cancel(self, name: str, departure: Departure) -> None:
        """It does not go there after all."""
        del self.departures[name]
        self._keep("departure", name, None)
        self._post(departure.target, h.Cancel(name, departure.ticket))

    def _ready(self, name: str, ticket: str) -> None:
        departure = self.departures.get(name)
        if departure is None or departure.ticket != ticket or departure.ready:
            return
        departure.ready = True
        self._note_departure(name)
        self.closing[name] = departure.target

    def freeze(self, name: str, now: float) -> None:
        """Let a session get nothing more here; not in the step that made it ready to go: no row says that yet."""
        departure = self.departures[name]
        if departure.ready and not departure.frozen:
            departure.frozen = True
            self._broker.ask_no_more(name, now)

    def waiting(self, name: str, limit: int) -> list[tuple[int, Pending]]:
        """What is to be sent next of a frozen session: deliveries, whose entries `carry` needs."""
        departure, session = self.departures[name], self._broker.sessions[name]
        numbers = pending_numbers(session, max(departure.carried + 1, session.oldest), session.count)
        return [(number, session.pending[number]) for number in islice(numbers, limit)]

    def carry(
        self, name: str, waiting: Sequence[tuple[int, Pending]], entries: Mapping[int, JournalEntry], now: float
    ) -> bool:
        """Send that, without what the log no longer has. With the last of it the session is gone: is it?"""
        departure, session = self.departures[name], self._broker.sessions[name]
        items = carried_of(waiting, entries)
        session.dropped += len(waiting) - len(items)
        if items:
            self._post(departure.target, h.Carry(name, departure.ticket, items))
        if waiting:
            departure.carried = waiting[-1][0]
            self._note_departure(name)
        if self.waiting(name, 1):
            return False
        had = [(publisher, by, sequence) for (publisher, by), sequence in departure.had.items()]
        counts = session.sequence, session.count, session.done, session.dropped
        more = session.doubt, session.moves, session.lives, session.warned
        self._post(departure.target, h.Moved(name, departure.ticket, *counts, had, *more))
        del self.departures[name]
        self._keep("departure", name, None)
        self._broker.end(name, now)
        self.gone[name] = departure.target, now
        self._keep("gone", name, [departure.target, now])
        return True

    # Where it goes

    def _arrival(self, word: h.Word) -> Arrival | None:
        arrival = self.arrivals.get(word.session)
        return arrival if arrival is not None and arrival.ticket == word.ticket else None

    def _going(self, going: h.Going, source: str, now: float) -> None:
        arrival, name = self._arrival(going), going.session
        if arrival is None or arrival.session is not None:
            self._post(source, h.Cancel(name, going.ticket))
            return
        try:
            promises = [m.Advertise(id, wire.filter_of(text)) for id, text in going.advertisements.items()]
            wishes = [m.Subscribe(id, wire.filter_of(text)) for id, text in going.subscriptions.items()]
        except ValueError as error:
            self._post(source, h.Cancel(name, going.ticket))
            self._refuse(name, f"{self._broker.broker.name} cannot read what the session {name} wants: {error}")
            return
        if name in self._broker.keeping.kept:  # of which there is no need: the node has answered
            self._broker.keeping.drop(name, now)
        arrival.source, arrival.since = source, self._broker.position
        arrival.session = Session(going.identity, True, False, now, owner=going.owner)
        aside = Session(going.identity, True, False, now, owner=going.owner, moved=arrival.aside)
        self._broker.sessions[name] = aside
        self._note_arrival(name)
        self._broker.note_session(name)
        for message in (*promises, *wishes):
            self._broker.settle(message, name, now)
        self._post(source, h.Ready(name, going.ticket))

    def _carry(self, carry: h.Carry, now: float) -> None:
        arrival = self._arrival(carry)
        if arrival is None or arrival.session is None:
            return
        for one in readable(carry):
            to = [(carry.session, arrival.aside, one.number, list(one.subscriptions))]
            rest = EntryDetails(one.by, one.source, to=to, expires=one.expires, replaces=one.replaces)
            position = self._broker.append(
                now, one.publisher, handed_over(one.sequence), one.event, encode_details(rest)
            )
            arrival.session.pending[one.number] = pending_of(one, position)

    def _moved(self, moved: h.Moved, now: float) -> None:
        arrival, name = self._arrival(moved), moved.session
        if arrival is None or arrival.session is None:
            return
        aside, session = self._broker.sessions[name], arrival.session
        session.sequence, session.count, session.done = moved.sequence, moved.count, moved.done
        session.dropped, session.doubt = moved.dropped + aside.dropped, moved.doubt
        session.moves, session.lives, session.warned = moved.moves + 1, moved.lives[-MOST:], moved.warned
        self._broker.keep(losses.row(name, session))
        session.taken, session.moved = session.done, arrival.here(self._broker.position)
        session.sent = moved.count  # its old node may have sent all of that
        self._broker.sessions[name] = session
        carried, session.pending = session.pending, {}
        for number in sorted(carried):
            self._broker.hold(name, carried[number], number)
        had = {(publisher, by): sequence for publisher, by, sequence in moved.had}
        kept = [(aside.pending[number], arrival.keys[number]) for number in sorted(aside.pending)]
        for pending, (publisher, by, sequence) in kept + arrival.later:
            if sequence > had.get((publisher, by), -1):
                self._broker.hold(name, pending)
        session.oldest = min(session.pending, default=session.count + 1)
        self._arrived(name, now)

    def _arrived(self, name: str, now: float) -> None:
        onwards = self.arrivals.pop(name).onwards
        self._keep("arrival", name, None)
        self._is_here(name)
        self._broker.sessions[name].seen = now
        self._broker.note_session(name)
        self._broker.wake(name)
        self._broker.keeping.changed(name)
        if onwards is not None:
            self._come(name, *onwards)

    def _is_here(self, name: str) -> None:
        if self.gone.pop(name, None) is not None:
            self._keep("gone", name, None)

    def _elsewhere(self, elsewhere: h.Elsewhere, now: float) -> None:
        arrival, name = self._arrival(elsewhere), elsewhere.session
        if arrival is None:
            return
        if elsewhere.refused:
            self._refuse(name, elsewhere.refused)
            return
        node = elsewhere.node
        if node == self._broker.broker.name:  # so it was, once
            node = self.gone.get(name, ("", 0.0))[0]
        if node:
            arrival.source = node
            self._note_arrival(name)
            self._post(arrival.source, h.Come(name, arrival.ticket, arrival.owner))
        elif name in self._broker.keeping.kept:
            self._broker.keeping.take_over(name)
            self._arrived(name, now)
        else:  # nobody has it: it begins anew
            self._anew.add(name)
            self._broker.sessions[name] = Session(arrival.ticket, True, False, now, owner=arrival.owner or "")
            self._arrived(name, now)

    def _refuse(self, name: str, reason: str) -> None:
        arrival = self.arrivals.pop(name)
        self._keep("arrival", name, None)
        self.refused[name, arrival.owner] = reason
        if arrival.onwards is not None:
            self._post(arrival.onwards[1], h.Elsewhere(name, arrival.onwards[0], refused=reason))

    def _cancelled(self, name: str, ticket: str, now: float) -> None:
        arrival, departure = self.arrivals.get(name), self.departures.get(name)
        kept = self._broker.keeping.kept.get(name)
        if arrival is not None and arrival.ticket == ticket:
            self._discard(name, arrival, now)
            if arrival.onwards is not None:
                self._post(arrival.onwards[1], h.Elsewhere(name, arrival.onwards[0], arrival.source))
        elif departure is not None and departure.ticket == ticket and not departure.ready:
            del self.departures[name]
            self._keep("departure", name, None)
        if kept is not None and kept.ticket == ticket:
            self._broker.keeping.drop(name, now)

    def _discard(self, name: str, arrival: Arrival, now: float) -> None:
        """Forget what has come of a session."""
        del self.arrivals[name]
        self._keep("arrival", name, None)
        if arrival.session is not None:
            self._broker.end(name, now)

    # For the broker

    def delivered(self, name: str, number: int, key: EventId) -> None:
        """A session got an event; if it moves, that is noted."""
        arrival, departure = self.arrivals.get(name), self.departures.get(name)
        if arrival is not None:
            arrival.keys[number] = key
        if departure is not None:
            departure.had[key[:2]] = key[2]

    def ended(self, name: str) -> None:
        """A session is over here."""
        self._anew.discard(name)
        self.passes.pop(name, None)

    def low_water(self) -> list[int]:
        """Positions from which on the log is needed."""
        moving: list[Arrival | Departure] = [*self.arrivals.values(), *self.departures.values()]
        return [one.since + 1 for one in moving]

    def expire(self, now: float, life: float) -> None:
        """Forget where sessions went long ago; they may have been used there ever since."""
        for name in [name for name, (_, when) in self.gone.items() if now - when > 10 * life]:
            del self.gone[name]
            self._keep("gone", name, None)

    def _keep(self, kind: str, name: str, value: Any) -> None:
        self._broker.keep(Row(kind, (name,), value))

    def _note_arrival(self, name: str) -> None:
        one = self.arrivals[name]
        identity = one.session.identity if one.session is not None else None
        owner = one.session.owner if one.session is not None else ""
        row = [one.since + 1, one.ticket, one.source, one.owner, identity, owner, one.onwards]
        self._keep("arrival", name, row)

    def _note_departure(self, name: str) -> None:
        one = self.departures[name]
        self._keep("departure", name, [one.since + 1, one.ticket, one.target, one.ready, one.carried])

    # Coming back

    def restore(self, stored: StoredRows) -> None:
        """Take up what was stored, before the entries of the log."""
        for (name,), (low, ticket, source, wanted, identity, owner, onwards) in stored.get("arrival", {}).items():
            session = None if identity is None else Session(identity, True, False, owner=owner)
            further = None if onwards is None else (onwards[0], onwards[1], onwards[2])
            self.arrivals[str(name)] = Arrival(ticket, source, wanted, low - 1, session, onwards=further)
        for (name,), (low, ticket, target, ready, carried) in stored.get("departure", {}).items():
            self.departures[str(name)] = Departure(ticket, target, low - 1, ready, carried=carried)
        for (name,), (node, _) in stored.get("gone", {}).items():
            self.gone[str(name)] = node, self._broker.now  # clients could not come back while the node was down

    def restore_entry(self, entry: JournalEntry, rest: EntryDetails) -> None:
        """Note again what an entry says of sessions that move."""
        for name, mark, number, ids in rest.to:
            arrival, departure = self.arrivals.get(name), self.departures.get(name)
            if arrival is not None and arrival.session is not None:
                event = entry.publisher, rest.by, entry.sequence
                key = replacement_key(entry.publisher, rest.replaces)
                pending = Pending(entry.position, tuple(ids), rest.expires or NEVER, replaces=key)
                if mark == arrival.aside and is_handed_over(entry):
                    arrival.session.pending[number] = pending
                elif mark == arrival.aside:
                    arrival.keys[number] = event
                elif mark.startswith(arrival.here(0)[:-1]):
                    arrival.later.append((pending, event))
            session = self._broker.sessions.get(name)
            mine = session is not None and session.mark == mark and not is_handed_over(entry)
            if departure is not None and mine and entry.position > departure.since:
                key = entry.publisher, rest.by
                departure.had[key] = max(departure.had.get(key, -1), entry.sequence)


def readable(carry: h.Carry) -> list[h.Carried]:
    """What came with a session, without what is no event: no client could read what stands beside it."""
    found = []
    for one in carry.items:
        try:
            msgpack.decode(one.event)
        except EventError as error:
            logger.error(
                "an event that came with the session %s cannot be read, and is left out: %s", carry.session, error
            )
        else:
            found.append(one)
    return found


def pending_of(one: h.Carried, position: int) -> Pending:
    """A delivery that came with a session, and stands in the log now."""
    key = replacement_key(one.publisher, one.replaces)
    return Pending(position, one.subscriptions, one.expires or NEVER, old=one.old, replaces=key)


def carried_of(waiting: Iterable[tuple[int, Pending]], entries: Mapping[int, JournalEntry]) -> list[h.Carried]:
    """Deliveries as they are sent, but for those that the log no longer has."""
    return [_carried(n, pending, entries[pending.position]) for n, pending in waiting if pending.position in entries]


def _carried(number: int, pending: Pending, entry: JournalEntry) -> h.Carried:
    rest = details_of(entry)
    expires = 0.0 if pending.expires == NEVER else pending.expires
    sequence = handed_over(entry.sequence) if is_handed_over(entry) else entry.sequence
    about = entry.publisher, sequence, rest.by, rest.source, rest.replaces, entry.event
    return h.Carried(number, pending.subscriptions, expires, *about, pending.old)
