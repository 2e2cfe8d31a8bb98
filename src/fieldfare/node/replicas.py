"""`Replicas`: copies of sessions at other nodes, should theirs fail for good. What is said: `protocol.handover`.

The node of a session gives it *keepers* among its neighbours. A keeper does not get events from that node, but asks for
them as the session does; so an event that is safe somewhere comes to it whatever happens to the other. Since the keeper
counts on its own, a session that is taken over goes on with numbers that its node cannot have used, and may have events
that its client has had: those are *doubtful*, and the client drops what it knows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from fieldfare.node.handover import pending_of, readable
from fieldfare.node.state import INTERNAL, NEVER, Pending, Session, pending_numbers
from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import (
    EntryDetails,
    JournalEntry,
    Row,
    StoredRows,
    encode_details,
    handed_over,
    is_handed_over,
    replacement_key,
)
from fieldfare.routing.deduplication import EventId

if TYPE_CHECKING:
    from fieldfare.node.durable_broker import DurableBroker

logger = logging.getLogger("fieldfare.node")

LEAP: Final = 1_000_000
"""numbers that are left out when a session is taken over: its node may have used some that the keeper does not know"""


class Copy(msgspec.Struct):
    """What the node of a session knows of a keeper."""

    ticket: str
    wants: dict[str, str]
    """what the keeper was told that the session wants"""
    ready: bool = False
    upto: int = 0
    """the number of the last delivery that the keeper may not have got by itself"""
    carried: int = 0


class Sent(NamedTuple):
    """Some of what waits for a session, for a keeper."""

    name: str
    keeper: str
    ticket: str
    items: Sequence[h.Carried]
    upto: int | None
    """all up to this number is sent then, or is done with; None: that was all"""


class Replica(msgspec.Struct):
    """What a keeper knows of a session."""

    ticket: str
    node: str
    identity: str
    owner: str
    mark: str
    """by which the log knows what is kept"""
    sequence: int = 0
    count: int = 0
    done: int = 0
    moves: int = 0
    had: dict[tuple[str, str], int] = {}
    """by publisher: the last event that the client is done with"""
    carried: dict[int, tuple[Pending, EventId]] = {}
    keys: dict[int, EventId] = {}
    """of what came here, by number"""

    def open(self, event: EventId) -> bool:
        """May the client still need an event?"""
        return event[2] > self.had.get(event[:2], -1)


class Replicas:
    """The copies of a node's sessions, and those that it keeps for others."""

    def __init__(self, broker: DurableBroker, keepers: int) -> None:
        """Nothing is kept. Each session is to have so many keepers, if there are so many neighbours."""
        self._broker = broker
        self._wanted = keepers
        self.copies: dict[str, dict[str, Copy]] = {}
        """by session and keeper"""
        self.kept: dict[str, Replica] = {}
        self._keys: dict[str, dict[int, EventId]] = {}
        """by session and number: what is not done with"""
        self._changed: set[str] = set()
        self._due: set[tuple[str, str]] = set()

    def _post(self, to: str, word: h.AnyWord) -> None:
        self._broker.letters.post(to, h.encode(word))

    # At the node of a session

    def changed(self, name: str) -> None:
        """A session is here, or wants something else: its keepers must know, when this step is over."""
        if self._wanted:
            self._changed.add(name)

    def welcome(self, now_linked: str) -> None:
        """There is a new neighbour, who may be a keeper."""
        for name, session in self._broker.sessions.items():
            few = len(self.copies.get(name, {})) < self._wanted
            if session.durable and few and name not in self.kept and now_linked not in self.copies.get(name, {}):
                self._changed.add(name)

    def step(self) -> None:
        """Let sessions have their keepers, and have those know what is wanted now."""
        changed, self._changed = self._changed, set()
        moving = self._broker.moving
        for name in sorted(changed):
            session = self._broker.sessions.get(name)
            mine = name not in self.kept and not name.startswith(INTERNAL) and moving.where(name) == "here"
            if session is not None and session.durable and mine:
                self._copy(name, session)

    def _copy(self, name: str, session: Session) -> None:
        wants, promises = self._broker.wants(name)
        copies = self.copies.setdefault(name, {})
        life, changes = self._broker.broker.life, self._broker.changes
        fresh = f"{self._broker.broker.name}/{life}/{changes}/{self._broker.position}"
        more = [one for one in sorted(self._broker.links) if one not in copies][: self._wanted - len(copies)]
        for number, keeper in enumerate([*copies, *more]):  # whoever is one stays one: its clients know of it
            if keeper in copies and copies[keeper].wants == wants:
                continue
            copies[keeper] = Copy(f"{fresh}+{number}", wants)
            self._note_copy(name, keeper)
            ticket = copies[keeper].ticket
            self._post(keeper, h.Going(name, ticket, session.identity, session.owner, wants, promises, keep=True))

    def end(self, name: str) -> None:
        """A session needs no keepers any more."""
        self._keys.pop(name, None)
        for keeper, copy in self.copies.pop(name, {}).items():
            self._post(keeper, h.Cancel(name, copy.ticket))
            self._broker.keep(Row("copy", (name, keeper)))

    def renew(self, name: str) -> None:
        """A session has another identity: what keepers have is of no use."""
        if self.copies.get(name):
            self.end(name)
            self._changed.add(name)

    def parted(self, neighbour: str) -> None:
        """A neighbour is none any more, so it keeps nothing for us."""
        for name, copies in self.copies.items():
            if copies.pop(neighbour, None) is not None:
                self._broker.keep(Row("copy", (name, neighbour)))
                self._changed.add(name)

    def ready(self, name: str, ticket: str, keeper: str) -> bool:
        """A keeper has asked for what a session wants; what came before has to be sent to it. Is it a keeper?"""
        copy = self.copies.get(name, {}).get(keeper)
        if copy is None or copy.ticket != ticket:
            return False
        copy.ready, copy.upto = True, self._broker.sessions[name].count
        self._due.add((name, keeper))
        self._note_copy(name, keeper)
        return True

    def due(self) -> list[tuple[str, str]]:
        """Sessions and keepers that have to be sent something."""
        self._due = {pair for pair in self._due if self._is_due(*pair)}
        return sorted(self._due)

    def _is_due(self, name: str, keeper: str) -> bool:
        copy = self.copies.get(name, {}).get(keeper)
        return copy is not None and copy.ready and copy.carried < copy.upto

    def waiting(self, name: str, keeper: str, limit: int) -> tuple[str, list[tuple[int, Pending]]]:
        """What is to be sent next to a keeper, and for which ticket."""
        copy, session = self.copies[name][keeper], self._broker.sessions[name]
        numbers = pending_numbers(session, max(copy.carried + 1, session.oldest), copy.upto)
        return copy.ticket, [(number, session.pending[number]) for number in islice(numbers, limit)]

    def send(self, sent: Sent) -> None:
        """Send it."""
        copy = self.copies.get(sent.name, {}).get(sent.keeper)
        if copy is not None and copy.ticket == sent.ticket:
            if sent.items:
                self._post(sent.keeper, h.Carry(sent.name, sent.ticket, list(sent.items)))
            copy.carried = copy.upto if sent.upto is None else sent.upto
            self._note_copy(sent.name, sent.keeper)

    def acknowledged(self, name: str, number: int) -> None:
        """A client is done with all up to a number: keepers need to know which events those are."""
        copies, keys = self.copies.get(name), self._keys.get(name, {})
        if not copies:
            return
        had: dict[tuple[str, str], int] = {}
        while keys and (first := next(iter(keys))) <= number:
            event = keys.pop(first)
            had[event[:2]] = event[2]
        session = self._broker.sessions[name]
        marks = [(publisher, by, sequence) for (publisher, by), sequence in had.items()]
        for keeper, copy in copies.items():
            counts = session.sequence, session.count, session.done, session.moves
            self._post(keeper, h.Done(name, copy.ticket, *counts, marks))

    def lost(self, name: str, identity: str, keeper: str, now: float) -> bool:
        """A keeper's copy is in use, since this node did not answer. Was that ours?"""
        session, departure = self._broker.sessions.get(name), self._broker.moving.departures.get(name)
        going = departure is not None and departure.ready
        if session is None or session.identity != identity or going or keeper not in self.copies.get(name, {}):
            return False
        del self.copies[name][keeper]
        self._broker.keep(Row("copy", (name, keeper)))
        self._broker.end(name, now)
        return True

    # At a keeper

    def keep(self, going: h.Going, node: str, now: float) -> None:
        """Become the keeper of a session, or hear what it wants now; unless there is another one of that name."""
        name, kept = going.session, self.kept.get(going.session)
        if kept is not None and kept.identity != going.identity:
            self.drop(name, now)
            kept = None
        taken = name in self._broker.sessions or name in self._broker.moving.arrivals
        if kept is None and taken:
            return
        try:
            wishes = {id: m.Subscribe(id, wire.filter_of(text)) for id, text in going.subscriptions.items()}
        except ValueError as error:
            logger.error(
                "the session %s of %s has no copy here: what it asks for cannot be read: %s", name, node, error
            )
            return
        if kept is None:
            mark = f"{going.ticket}/{self._broker.position}"
            kept = self.kept[name] = Replica(going.ticket, node, going.identity, going.owner, mark)
            self._broker.sessions[name] = Session(kept.identity, True, False, now, owner=kept.owner, moved=mark)
        kept.ticket, kept.node = going.ticket, node
        self._note_kept(name)
        self._broker.note_session(name)
        before = self._broker.broker.clients.get(name).subscriptions
        for message in [*wishes.values(), *(m.Unsubscribe(id) for id in list(before) if id not in wishes)]:
            self._broker.settle(message, name, now)
        self._post(node, h.Ready(name, going.ticket))

    def expire(self, now: float, life: float) -> None:
        """Forget what nobody has asked for in a very long time; a node says so itself when it needs us no more."""
        for name in [name for name in self.kept if now - self._broker.sessions[name].seen > 10 * life]:
            self.drop(name, now)

    def drop(self, name: str, now: float) -> None:
        """Keep a session no more."""
        del self.kept[name]
        self._broker.keep(Row("kept", (name,)))
        self._broker.end(name, now)

    def carry(self, carry: h.Carry, now: float) -> None:
        """Some of what waited for a session before this was its keeper."""
        kept = self._kept(carry)
        for one in readable(carry) if kept is not None else ():
            assert kept is not None
            to = [(carry.session, kept.mark, one.number, list(one.subscriptions))]
            rest = EntryDetails(one.by, one.source, to=to, expires=one.expires, replaces=one.replaces)
            position = self._broker.append(
                now, one.publisher, handed_over(one.sequence), one.event, encode_details(rest)
            )
            kept.carried[one.number] = pending_of(one, position), (one.publisher, one.by, one.sequence)

    def done(self, done: h.Done, now: float) -> None:
        """The client is done with some events."""
        kept, name = self._kept(done), done.session
        if kept is None:
            return
        kept.sequence, kept.count, kept.done, kept.moves = done.sequence, done.count, done.done, done.moves
        for publisher, by, sequence in done.had:
            kept.had[publisher, by] = max(sequence, kept.had.get((publisher, by), -1))
        self._note_kept(name)
        self._broker.sessions[name].seen = now
        self._trim(name, kept)

    def _trim(self, name: str, kept: Replica) -> None:
        kept.carried = {number: item for number, item in kept.carried.items() if number > kept.done}
        pending = self._broker.sessions[name].pending
        for number in [number for number, event in kept.keys.items() if not kept.open(event)]:
            del kept.keys[number]
            pending.pop(number, None)

    def take_over(self, name: str) -> None:
        """Let the session go on here."""
        kept = self.kept.pop(name)
        self._broker.keep(Row("kept", (name,)))
        self._trim(name, kept)
        aside = self._broker.sessions[name]
        base = max(kept.count, *kept.carried, 0) + LEAP
        mark = f"{kept.ticket}//{self._broker.position}"
        session = Session(kept.identity, True, False, aside.seen, kept.sequence, base, owner=kept.owner, moved=mark)
        session.done = session.taken = base
        session.oldest, session.moves, session.dropped = base + 1, kept.moves + 1, aside.dropped
        self._broker.sessions[name] = session
        here = {event for _, event in kept.carried.values()}
        waiting = [kept.carried[number][0] for number in sorted(kept.carried)]
        waiting += [aside.pending[n] for n in sorted(aside.pending) if kept.keys.get(n) not in here]
        for pending in waiting:
            self._broker.hold(name, pending)
        session.doubt = session.count
        self._broker.note_session(name)
        self._post(kept.node, h.Lost(name, kept.ticket, kept.identity))

    def _kept(self, word: h.Word) -> Replica | None:
        kept = self.kept.get(word.session)
        return kept if kept is not None and kept.ticket == word.ticket else None

    # For the broker

    def delivered(self, name: str, number: int, event: EventId) -> None:
        """A session got an event; if it is copied or kept, that is noted."""
        if name in self.copies:
            self._keys.setdefault(name, {})[number] = event
        if name in self.kept:
            self.kept[name].keys[number] = event

    def low_water(self) -> list[int]:
        """Positions from which on the log is needed."""
        carried = (one.carried.values() for one in self.kept.values() if one.carried)
        return [min(pending.position for pending, _ in items) for items in carried]

    def _note_copy(self, name: str, keeper: str) -> None:
        one = self.copies[name][keeper]
        self._broker.keep(Row("copy", (name, keeper), [one.ticket, one.wants, one.ready, one.upto, one.carried]))

    def _note_kept(self, name: str) -> None:
        one = self.kept[name]
        had = [[publisher, by, sequence] for (publisher, by), sequence in one.had.items()]
        low = min((pending.position for pending, _ in one.carried.values()), default=self._broker.position + 1)
        about = [one.ticket, one.node, one.identity, one.owner, one.mark]
        row: list[Any] = [low, *about, one.sequence, one.count, one.done, one.moves, had]
        self._broker.keep(Row("kept", (name,), row))

    def checkpoint(self) -> None:
        """Let rows say how things stand."""
        for name in self.kept:
            self._note_kept(name)

    def restore(self, stored: StoredRows) -> None:
        """Take up what was stored, before the entries of the log."""
        for (name, keeper), row in stored.get("copy", {}).items():
            self.copies.setdefault(str(name), {})[str(keeper)] = Copy(*row)
            self._due.add((str(name), str(keeper)))
        for (name,), (_, ticket, node, identity, owner, mark, *counts, had) in stored.get("kept", {}).items():
            sequence, count, done, moves = counts
            marks = {(publisher, by): last for publisher, by, last in had}
            self.kept[str(name)] = Replica(ticket, node, identity, owner, mark, sequence, count, done, moves, marks)

    def restore_entry(self, entry: JournalEntry, rest: EntryDetails) -> None:
        """Note again what an entry says of sessions that are copied or kept."""
        sequence = handed_over(entry.sequence) if is_handed_over(entry) else entry.sequence
        event = entry.publisher, rest.by, sequence
        for name, mark, number, ids in rest.to:
            kept, session = self.kept.get(name), self._broker.sessions.get(name)
            if kept is not None and mark == kept.mark and is_handed_over(entry):
                key = replacement_key(entry.publisher, rest.replaces)
                pending = Pending(entry.position, tuple(ids), rest.expires or NEVER, replaces=key)
                kept.carried[number] = pending, event
            elif kept is not None and mark == kept.mark:
                kept.keys[number] = event
            elif name in self.copies and session is not None and session.mark == mark and number > session.done:
                self._keys.setdefault(name, {})[number] = event

    def settle(self) -> None:
        """All entries are read: what clients are done with need not be kept."""
        for name, kept in self.kept.items():
            self._trim(name, kept)
