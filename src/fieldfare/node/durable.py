"""`DurableBroker`: a broker that loses nothing it has accepted, whenever it is killed.

What must survive is a set of *rows*. Each step gives the rows that it changes and the messages that follow; whoever
runs the broker writes the rows in one transaction, and only then sends the messages. So nobody hears of anything that a
crash could undo. A publisher's event is *accepted* when it, its deliveries and what neighbours must get of it are safe.

- A client with a *session* keeps its filters, and the deliveries that it has not acknowledged. Each has the position of
  its event in the log; the client acknowledges all up to one. What it says twice is done once.
- What goes to a neighbour is numbered and kept until the neighbour says that it is safe there. A neighbour that is away
  misses nothing, and what arrives twice is taken once.

A restart is then only a pause: the broker is made anew from its rows, and its neighbours, who need not know, are told
all that they must know once more. No I/O here: rows go out as values, and come in again as what was stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from fieldfare.filters import parse
from fieldfare.routing import messages as m
from fieldfare.routing import wire
from fieldfare.routing.broker import Broker
from fieldfare.routing.messages import About, Message, Role, Send, Tell

Key: TypeAlias = tuple[str | int, ...]
Stored: TypeAlias = Mapping[str, Mapping[Key, Any]]
"""all rows, by kind and key"""


class Row(NamedTuple):
    """Something to be stored; with the value None, to be deleted."""

    kind: str
    key: Key
    value: Any = None


class Step(NamedTuple):
    """What a message leads to: first all rows are written, at once; then the messages are sent."""

    rows: list[Row]
    sends: list[Send]


# What is said beside the messages of brokers


class Attach(Message, frozen=True):
    """A client is there, and wants what it has not acknowledged. Without a session it is forgotten when it goes."""

    session: bool = True


class Detach(Message, frozen=True):
    """A client is away. Said by whoever runs the broker."""


class Accepted(Message, frozen=True):
    """The event of that number is safe, and so are all that you published before it."""

    sequence: int


class Delivery(Message, frozen=True):
    """An event for a session, at a position."""

    position: int
    deliver: m.Deliver


class Acknowledge(Message, frozen=True):
    """I am done with all deliveries up to a position."""

    position: int


class Numbered(Message, frozen=True):
    """A message between neighbours, with its place in all that was said."""

    number: int
    message: bytes
    """in the wire form"""


class Received(Message, frozen=True):
    """All that you said, up to a number, is safe here."""

    number: int


class _Session(msgspec.Struct):
    """A client, as far as its events and deliveries go."""

    durable: bool
    here: bool = True
    sequence: int = 0
    """of the last event that it published and that is safe"""
    pending: dict[int, m.Deliver] = {}


class _Link(msgspec.Struct):
    """A neighbour, as far as messages go."""

    role: Role
    said: int = 0
    heard: int = 0
    outbox: dict[int, bytes] = {}
    told: dict[About, dict[str, None]] = {}
    """what it wants and promises, as texts; there may be more than counts: see `_note_told`"""


class DurableBroker:
    """A broker and what survives of it."""

    def __init__(self, broker: Broker, stored: Stored | None = None) -> None:
        """Let a new broker take up what was stored. The first step then says all again to its neighbours."""
        self.broker = broker
        self._sessions: dict[str, _Session] = {}
        self._links: dict[str, _Link] = {}
        self._position = 0
        self._rows: list[Row] = []
        if stored is not None:
            self._restore(stored)

    # Steps

    def receive(self, message: Message, sender: str, now: float) -> Step:
        """Take a message of a client, of a neighbour, or of whoever runs the broker."""
        match message:
            case Attach():
                sends = self._attach(sender, durable=message.session)
            case Detach():
                sends = self._detach(sender, now)
            case Acknowledge():
                sends = self._acknowledge(sender, message.position)
            case m.Publish():
                sends = self._publish(message, sender, now)
            case Numbered():
                sends = self._numbered(message, sender, now)
            case Received():
                sends = self._received(message.number, sender)
            case m.Connect():
                sends = self._connect(message, sender, now)
            case m.Disconnect():
                sends = self._disconnect(sender, now)
            case _:
                sends = self._change(message, sender, now)
        return self._step(sends)

    def tick(self, now: float) -> Step:
        """Let time pass."""
        return self._step(self._carry(self.broker.tick(now)))

    def introduce(self) -> Step:
        """After a restart: say to every neighbour all that it must know. It may be worded otherwise than before."""
        sends = []
        for neighbour in self._links:
            for about in self.broker.routes.subjects():
                wanted = self.broker.routes.exports(neighbour, about)
                sends.append(self._say(neighbour, Tell(wanted, about=about, all=True)))
        return self._step(sends)

    @property
    def wakes(self) -> float | None:
        """When it wants `tick` to be called, if at all."""
        return self.broker.wakes

    def heard(self, neighbour: str) -> int:
        """The last number of a neighbour that is safe here: what to tell it when a link is up again."""
        return self._links[neighbour].heard if neighbour in self._links else 0

    def resume(self, neighbour: str, heard: int) -> Step:
        """A link is up again, and the neighbour has all up to a number: forget that, and say the rest once more."""
        if neighbour not in self._links:
            return Step([], [])
        self._received(heard, neighbour)
        outbox = self._links[neighbour].outbox
        return self._step([Send(neighbour, Numbered(number, data)) for number, data in outbox.items()])

    def _step(self, sends: list[Send]) -> Step:
        rows, self._rows = self._rows, []
        return Step(rows, sends)

    # Clients

    def _attach(self, client: str, *, durable: bool) -> list[Send]:
        session = self._sessions.setdefault(client, _Session(durable))
        session.here = True
        session.durable |= durable
        if session.durable:
            self._rows.append(Row("session", (client,), session.sequence))
        return [
            Send(client, Accepted(session.sequence)),
            *(Send(client, Delivery(position, deliver)) for position, deliver in session.pending.items()),
        ]

    def _detach(self, client: str, now: float) -> list[Send]:
        session = self._sessions.get(client)
        if session is None:
            return []
        session.here = False
        return [] if session.durable else self._change(m.Leave(), client, now)

    def _acknowledge(self, client: str, position: int) -> list[Send]:
        pending = self._session(client).pending
        for done in [other for other in pending if other <= position]:
            del pending[done]
            self._rows.append(Row("pending", (client, done)))
        return []

    def _change(self, message: Message, client: str, now: float) -> list[Send]:
        """A client changes what it wants or promises."""
        durable = self._session(client).durable
        before = self.broker.clients.all.get(client)
        filters = [("subscriptions", id) for id in before.subscriptions] if before is not None else []
        filters += [("advertisements", id) for id in before.advertisements] if before is not None else []
        sends = self.broker.receive(message, client, now)
        if isinstance(message, m.Leave):
            session = self._sessions.pop(client)
            gone = [Row(about, (client, id)) for about, id in filters]
            gone += [Row("pending", (client, position)) for position in session.pending]
            self._rows += [*gone, Row("session", (client,))] if durable else []
        elif durable and not _refused(sends):
            self._rows += _filter_row(message, client)
        return self._carry(sends)

    def _publish(self, message: m.Publish, client: str, now: float) -> list[Send]:
        session = self._session(client)
        sequence = session.sequence + 1 if message.sequence is None else message.sequence
        if sequence <= session.sequence:
            return [Send(client, Accepted(session.sequence))]  # it is safe already
        sends = self.broker.receive(m.Publish(message.event, sequence), client, now)
        if _refused(sends):
            return sends
        self._log(m.Forward(message.event, client, sequence, source=self.broker.name))
        session.sequence = sequence
        if session.durable:
            self._rows.append(Row("session", (client,), sequence))
        return [*self._carry(sends), Send(client, Accepted(sequence))]

    def _session(self, client: str) -> _Session:
        if client not in self._sessions:
            raise ValueError(f"{client} has to attach first")
        return self._sessions[client]

    # Neighbours

    def _connect(self, message: m.Connect, neighbour: str, now: float) -> list[Send]:
        """A neighbour is known from now on, whether it can be reached or not."""
        if neighbour in self._links:
            return []
        sends = self.broker.receive(message, neighbour, now)
        self._links[neighbour] = _Link(message.role)
        self._note(neighbour)
        return self._carry(sends)

    def _disconnect(self, neighbour: str, now: float) -> list[Send]:
        """A neighbour is known no more, and what it was still to get is dropped."""
        sends = self.broker.receive(m.Disconnect(), neighbour, now)
        link = self._links.pop(neighbour)
        self._rows.append(Row("neighbour", (neighbour,)))
        self._rows += [Row("outbox", (neighbour, number)) for number in link.outbox]
        self._rows += [Row("told", (neighbour, about, text)) for about, texts in link.told.items() for text in texts]
        return self._carry(sends)

    def _numbered(self, message: Numbered, neighbour: str, now: float) -> list[Send]:
        """What a neighbour says, once; and that it is safe."""
        link = self._links[neighbour]
        sends: list[Send] = []
        if message.number > link.heard:
            inner = wire.decode(message.message)
            if isinstance(inner, m.Forward) and not self.broker.has_seen(inner):
                self._log(inner)
            sends = self._carry(self.broker.receive(inner, neighbour, now))
            link.heard = message.number
            for tell in inner.tells if isinstance(inner, m.Batch) else (inner,):
                if isinstance(tell, Tell):
                    self._note_told(tell, neighbour)
            self._note(neighbour)
        return [*sends, Send(neighbour, Received(link.heard))]

    def _received(self, number: int, neighbour: str) -> list[Send]:
        outbox = self._links[neighbour].outbox
        for done in [other for other in outbox if other <= number]:
            del outbox[done]
            self._rows.append(Row("outbox", (neighbour, done)))
        return []

    def _note(self, neighbour: str) -> None:
        link = self._links[neighbour]
        self._rows.append(Row("neighbour", (neighbour,), [link.role.value, link.said, link.heard]))

    def _note_told(self, tell: Tell, neighbour: str) -> None:
        """Keep what a neighbour said, as it was said.

        A filter that a larger one made the table forget stays in the rows. After a restart that means some events too
        many for the neighbour, until it says all again; it never means one too few.
        """
        told = self._links[neighbour].told.setdefault(tell.about, {})
        for text in list(told) if tell.all else map(str, tell.removed):
            if told.pop(text, text) is None:
                self._rows.append(Row("told", (neighbour, tell.about, text)))
        for text in map(str, tell.added):
            told[text] = None
            self._rows.append(Row("told", (neighbour, tell.about, text), 1))

    # What follows from a step of the broker

    def _log(self, event: m.Forward) -> None:
        """Give an event its position."""
        self._position += 1
        self._rows.append(Row("event", (self._position,), wire.encode(event)))

    def _carry(self, sends: Iterable[Send]) -> list[Send]:
        """Number what goes to neighbours, and give deliveries their position."""
        carried: list[Send] = []
        for send in sends:
            if send.to in self._links:
                carried.append(self._say(send.to, send.message))
            elif isinstance(send.message, m.Deliver) and send.to in self._sessions:
                carried += self._deliver(send.to, send.message)
            else:
                carried.append(send)
        return carried

    def _deliver(self, client: str, message: m.Deliver) -> list[Send]:
        session = self._sessions[client]
        if session.durable:
            session.pending[self._position] = message
            self._rows.append(Row("pending", (client, self._position), list(message.subscriptions)))
        return [Send(client, Delivery(self._position, message))] if session.here else []

    def _say(self, neighbour: str, message: Message) -> Send:
        link = self._links[neighbour]
        link.said += 1
        link.outbox[link.said] = data = wire.encode(message)
        self._rows.append(Row("outbox", (neighbour, link.said), data))
        self._note(neighbour)
        return Send(neighbour, Numbered(link.said, data))

    # Coming back

    def _restore(self, stored: Stored) -> None:
        for (client,), sequence in stored.get("session", {}).items():
            self._sessions[str(client)] = _Session(True, here=False, sequence=sequence)
        for (neighbour,), (role, said, heard) in stored.get("neighbour", {}).items():
            self._links[str(neighbour)] = _Link(Role(role), said, heard)
            self.broker.receive(m.Connect(Role(role)), str(neighbour), 0.0)
        for neighbour, about, text in stored.get("told", {}):
            self._links[str(neighbour)].told.setdefault(about, {})[str(text)] = None  # type: ignore[arg-type]
        for neighbour, link in self._links.items():
            for about in sorted(link.told):  # promises first: subscriptions may depend on them
                texts = tuple(map(parse, link.told[about]))
                self.broker.receive(Tell(texts, about=about), neighbour, 0.0)
        for (neighbour, number), data in sorted(stored.get("outbox", {}).items(), key=lambda row: int(row[0][1])):
            self._links[str(neighbour)].outbox[int(number)] = data
        for about, kind in (("advertisements", m.Advertise), ("subscriptions", m.Subscribe)):
            for (client, id), text in stored.get(about, {}).items():
                self.broker.receive(kind(str(id), parse(text)), str(client), 0.0)
        self._restore_events(stored)

    def _restore_events(self, stored: Stored) -> None:
        pending: dict[int, list[tuple[str, list[str]]]] = {}
        for (client, position), ids in stored.get("pending", {}).items():
            pending.setdefault(int(position), []).append((str(client), ids))
        for (position,), data in sorted(stored.get("event", {}).items()):
            event = wire.decode(data)
            assert isinstance(event, m.Forward)
            self.broker.note_seen(event, 0.0)
            self._position = int(position)
            for client, ids in pending.get(int(position), ()):
                deliver = m.Deliver(event.event, event.publisher, event.sequence, tuple(ids), event.by)
                self._sessions[client].pending[int(position)] = deliver


def _refused(sends: Iterable[Send]) -> bool:
    return any(isinstance(send.message, m.Refuse) for send in sends)


def _filter_row(message: Message, client: str) -> list[Row]:
    match message:
        case m.Subscribe(id=id, filter=filter):
            return [Row("subscriptions", (client, id), str(filter))]
        case m.Unsubscribe(id=id):
            return [Row("subscriptions", (client, id))]
        case m.Advertise(id=id, filter=filter):
            return [Row("advertisements", (client, id), str(filter))]
        case m.Unadvertise(id=id):
            return [Row("advertisements", (client, id))]
    return []
