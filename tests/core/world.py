"""`World`: durable brokers in memory, with disks, links and clients that move; every step may be cut short by a crash.

A link forgets the messages on the way when it breaks. A client repeats unaccepted events, counts a delivery once, and
follows its session. The actions that can happen next are listed by `actions`, so that a test can choose one by name,
and `settle` runs them until nothing is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import count
from typing import NamedTuple

from fieldfare.core.core import Core
from fieldfare.core.handover_state import SessionMoving
from fieldfare.core.replica_state import ReplicaPart
from fieldfare.core.state import Publication, Session
from fieldfare.core.step import Step
from fieldfare.core.stored_deliveries import stored_deliveries
from fieldfare.events.event import Event
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import JournalEntry, details_of, event_id, last_complete_position, low_water
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import Strategy

Rows = dict[str, dict[tuple[str | int, ...], object]]
Links = Sequence[tuple[str, str, m.Role]]
MOST_ACTIONS = 50_000
"""actions after which a world should have come to rest"""


class Death(Enum):
    """When a broker dies in a step, if it does."""

    NONE = "it lives"
    NOTHING_WRITTEN = "before anything is written"
    LOG_TORN = "with a part of the log entries written"
    ROWS_MISSING = "with all log entries written, but no rows"
    NOTHING_SENT = "with everything written, and nothing sent"


class Disk:
    """Rows and a log, as they would be on disk."""

    def __init__(self) -> None:
        self.rows: Rows = {}
        self.log: list[JournalEntry] = []

    def append(self, entries: Sequence[JournalEntry]) -> None:
        for entry in entries:
            assert entry.position == len(self.log) + 1
            self.log.append(entry)

    def write(self, step: Step) -> None:
        for kind, key, value in step.rows:
            table = self.rows.setdefault(kind, {})
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value


class Client:
    """A client that repeats unaccepted events, and counts each delivery once."""

    def __init__(self, name: str, home: str) -> None:
        self.name, self.home = name, home
        self.connected = False
        self.node: str | None = None
        """the node that has the session, as far as the client knows"""
        self.waits_at: str | None = None
        """the node where the client waits for its session"""
        self.moves = 0
        """how often the session has moved, as far as the client knows"""
        self.unaccepted: dict[int, Event] = {}
        self.published: dict[int, Event] = {}
        self.count = 0
        self.seen = 0
        """the number of the last delivery"""
        self.got: list[tuple[str, int]] = []
        """publisher and sequence number of each event that was new to the client"""

    def receive(self, number: int, publisher: str, sequence: int, doubt: int) -> None:
        if number <= self.seen:
            return
        self.seen = number
        last = max((n for who, n in self.got if who == publisher), default=-1)
        if number > doubt or sequence > last:  # a delivery in doubt may repeat an event
            self.got.append((publisher, sequence))


class Action(NamedTuple):
    """Something that can happen next: the name of a method of `World`, and its arguments."""

    method: str
    arguments: tuple[str, ...]


class World:
    """Brokers with disks, links that forget what is on the way when they break, and clients."""

    def __init__(self, strategy: Strategy, links: Links, *, forgetful: bool = False, replicas: int = 0) -> None:
        """Forgetful brokers do not remember events: then numbers alone must prevent duplicates."""
        self.strategy, self.replicas = strategy, replicas
        self.remember = 0.1 if forgetful else 1e9
        self.now = 0.0
        self.lives, self.tickets = count(), count(1)
        self.dead: set[str] = set()
        """nodes that have failed for good"""
        names = sorted({name for a, b, _ in links for name in (a, b)})
        self.disks = {name: Disk() for name in names}
        self.brokers = {name: self.core(name) for name in names}
        self.sent: dict[tuple[str, str], int] = {}
        """number of the last message that is on the way or has arrived, by sender and receiver"""
        self.channels: dict[tuple[str, str], list[tuple[int, list[bytes]] | int]] = {}
        """messages on the way, or numbers that acknowledge messages"""
        self.unnumbered: dict[tuple[str, str], list[bytes]] = {}
        self.clients = {f"{name}.{i}": Client(f"{name}.{i}", name) for name in names for i in (0, 1)}
        for a, b, role in links:
            for one, other, its in ((a, b, role), (b, a, role.opposite)):
                self.channels[one, other], self.sent[one, other], self.unnumbered[one, other] = [], 0, []
                self._connect(one, other, its)
        for here, neighbour in self.channels:
            self._set_reachable(here, neighbour, _behind(links, here, neighbour))
        for client in self.clients.values():
            self.reconnect(client.name)

    def _connect(self, one: str, other: str, role: m.Role) -> None:
        self.run(one, lambda core, now: core.links.connect(other, role, now))
        self.run(one, lambda core, now: core.links.link_up(other, now))

    def _set_reachable(self, here: str, neighbour: str, names: set[str]) -> None:
        self.run(here, lambda core, _: core.envelopes.set_reachable(neighbour, names))

    # Brokers

    def core(self, name: str, disk: Disk | None = None, first: int = 1) -> Core:
        """Return a new broker, or one that comes back with its disk."""
        core = Broker(name, self.strategy, life=next(self.lives), remember=self.remember)
        life = f"life {next(self.lives)}"
        if disk is None:
            return Core(core, replicas=self.replicas, life=life)
        entries = disk.log[first - 1 :]
        return Core(core, disk.rows, entries, replicas=self.replicas, now=self.now, life=life)

    def run(self, name: str, action: Callable[[Core, float], object], death: Death = Death.NONE, torn: int = 0) -> bool:
        """Run a step of a broker; tell whether the broker has survived it. `torn` entries survive a torn write."""
        self.now += 1
        core, disk = self.brokers[name], self.disks[name]
        action(core, self.now)
        if core.broker.wakes is not None and self.now >= core.broker.wakes:
            core.tick(self.now)
        step = core.drain()
        if death is not Death.NOTHING_WRITTEN:
            kept = torn % (len(step.entries) + 1) if death is Death.LOG_TORN else len(step.entries)
            disk.append(step.entries[:kept])
        if death in (Death.NONE, Death.NOTHING_SENT):
            disk.write(step)
        if death is not Death.NONE:
            self.crash(name)
            return False
        core.release(step)
        self.send(name)
        for session in step.closing:  # the client has to follow its session
            client = self.clients[session]
            if client.home == name and client.connected:
                client.connected = False
                client.waits_at = client.waits_at or name
        return True

    def send(self, name: str) -> None:
        """Send the released deliveries and messages of a broker."""
        core = self.brokers[name]
        for client in self.clients.values():
            if client.home == name and client.connected and client.name in core.sessions:
                doubt = core.sessions[client.name].doubt
                for number, pending in core.deliveries.next(client.name, 1000, self.now):
                    publisher, _, sequence = event_id(self.disks[name].log[pending.position - 1])
                    client.receive(number, publisher, sequence, doubt)
        for (one, other), sent in self.sent.items():
            if one == name and other in core.links:
                self.unnumbered[one, other] += core.links.take_unnumbered(other)
                outgoing = core.links.outgoing(other, sent, 1000)
                if outgoing:
                    messages = [self._encoded(name, what) for _, what in outgoing]
                    self.channels[one, other].append((outgoing[0][0], messages))
                    self.sent[one, other] = outgoing[-1][0]

    def _encoded(self, name: str, what: bytes | int) -> bytes:
        if isinstance(what, bytes):
            return what
        entry = self.disks[name].log[what - 1]
        details = details_of(entry)
        return wire.encode_forward(
            entry.event, entry.publisher, entry.sequence, by=details.by, source=details.source, expires=details.expires,
            replaces=details.replaces, tag=details.tag,
        )  # fmt: skip

    def crash(self, name: str) -> None:
        """Restart a broker from its disk; messages on the way to and from it are lost."""
        for client in self.clients.values():
            if client.home == name and client.connected:
                client.connected = False
                client.waits_at = client.waits_at or name
        disk = self.disks[name]
        if disk.log:
            del disk.log[last_complete_position(disk.log[-1]) :]
        self.brokers[name] = self.core(name, disk, low_water(disk.rows))
        self.run(name, lambda core, _: core.resume())
        for a, b in [pair for pair in self.channels if pair[0] == name]:
            self.break_link(a, b)

    def break_link(self, a: str, b: str) -> None:
        """Break a link and resume it."""
        for one, other in ((a, b), (b, a)):
            self.channels[one, other].clear()
            self.unnumbered[one, other].clear()
            self._link_up(one, other)
        for one, other in ((a, b), (b, a)):
            self.sent[one, other] = self.brokers[other].links[one].written
            self._acknowledge_messages(one, other, self.sent[one, other])

    def _link_up(self, one: str, other: str) -> None:
        self.run(one, lambda core, now: core.links.link_up(other, now))

    def _acknowledge_messages(self, one: str, other: str, number: int, death: Death = Death.NONE) -> bool:
        return self.run(one, lambda core, _: core.links.acknowledge(other, number), death)

    def checkpoint(self, name: str, death: Death = Death.NONE) -> None:
        self.run(name, lambda core, _: core.checkpoint(), death)

    def refresh_replica(self, session: str) -> None:
        """Let the node of a session describe it to its replica holders again."""
        node = self.clients[session].home
        self.run(node, lambda core, _: core.replicas.mark_changed(session))

    # Clients

    def reconnect(self, name: str) -> None:
        client = self.clients[name]
        client.waits_at = client.waits_at or client.home
        self.claim(name)

    def detach(self, name: str) -> None:
        client = self.clients[name]
        client.connected = False
        self.run(client.home, lambda core, now: core.sessions.detach(name, now))

    def move(self, name: str, to: str, *, make_before_break: bool, cancel: bool) -> None:
        """Let a client go to another node; it may stay connected for as long as it can, and cancel an earlier wait."""
        client = self.clients[name]
        if not make_before_break:
            client.connected = False
        before = client.waits_at
        if before is not None and before != to and cancel:
            self.run(before, lambda core, _: core.handovers.arrivals.cancel(name))
        client.waits_at = to
        self.claim(name)

    def claim(self, name: str, death: Death = Death.NONE) -> None:
        """Ask the node where a client waits for its session; if it is there, the client goes on."""
        client = self.clients[name]
        to = client.waits_at
        assert to is not None
        answer: list[Session | None] = []
        identity = f"{name}@" if client.node is not None else ""
        fresh = f"t{next(self.tickets)}" if identity else f"{name}@"

        def job(core: Core, now: float) -> None:
            at, moves = client.node or "", client.moves
            answer.append(core.handovers.claim(name, fresh, now, at=at, identity=identity, moves=moves))

        if not self.run(to, job, death) or answer[0] is None:
            return
        assert answer[0].identity == f"{name}@"
        client.waits_at, client.node, client.home, client.moves = None, to, to, answer[0].moves
        client.connected = True
        self.send(to)
        repeated = {**dict(list(client.published.items())[-2:]), **client.unaccepted}  # some of it needlessly
        for number, event in sorted(repeated.items(), key=lambda item: item[0]):
            self._publish(client, number, [event])

    def publish(self, name: str, events: Sequence[Event], death: Death = Death.NONE, torn: int = 0) -> None:
        client = self.clients[name]
        first = client.count + 1
        for event in events:
            client.count += 1
            client.unaccepted[client.count] = client.published[client.count] = event
        if client.connected:
            self._publish(client, first, events, death, torn)

    def _publish(
        self, client: Client, number: int, events: Sequence[Event], death: Death = Death.NONE, torn: int = 0
    ) -> None:
        answers: list[object] = []
        publication = Publication(client.name, number, events)
        job = lambda core, now: answers.extend(core.publish([publication], now))  # noqa: E731
        if client.connected and self.run(client.home, job, death, torn):
            (answer,) = answers
            assert isinstance(answer, int | SessionMoving), answer
            if isinstance(answer, int):
                client.unaccepted = {n: event for n, event in client.unaccepted.items() if n > answer}

    def change_filters(self, name: str, message: m.Message) -> None:
        home = self.clients[name].home
        self.run(home, lambda core, now: core.sessions.change_filters(message, name, now))

    def acknowledge(self, name: str, death: Death = Death.NONE) -> None:
        client = self.clients[name]
        self.run(client.home, lambda core, _: core.deliveries.acknowledge(name, client.seen), death)

    def has_session(self, name: str) -> bool:
        """Whether a client is connected to a node that can serve its session."""
        client = self.clients[name]
        return client.connected and self.brokers[client.home].handovers.status(name) == "here"

    # Actions that happen by themselves, in any order

    def actions(self) -> list[Action]:
        """Everything that can happen next without a client doing anything."""
        return list(self._actions())

    def _actions(self) -> Iterator[Action]:
        for (sender, to), unnumbered in self.unnumbered.items():
            if unnumbered and not self.dead & {sender, to}:
                yield Action("deliver_unnumbered", (sender, to))
        for (sender, to), channel in self.channels.items():
            if channel and not self.dead & {sender, to}:
                yield Action("deliver_message", (sender, to))
        for node, core in self.brokers.items():
            if node in self.dead:
                continue
            for session, departure in core.handovers.departures.items():
                if departure.ready:
                    yield Action("send_session", (node, session))
            for session, holder in core.replicas.due():
                yield Action("send_replica", (node, session, holder))
        for name, client in self.clients.items():
            if client.waits_at is not None:
                yield Action("claim", (name,))

    def perform(self, action: Action, death: Death = Death.NONE) -> None:
        getattr(self, action.method)(*action.arguments, death)

    def deliver_unnumbered(self, sender: str, to: str, death: Death = Death.NONE) -> None:
        data = self.unnumbered[sender, to].pop(0)
        self.run(to, lambda core, now: core.links.receive_unnumbered(sender, data, now), death)

    def deliver_message(
        self, sender: str, to: str, death: Death = Death.NONE, *, twice: bool = False, torn: int = 0
    ) -> None:
        message = self.channels[sender, to].pop(0)
        for _ in range(2 if twice and death is Death.NONE else 1):
            if isinstance(message, int):
                self._acknowledge_messages(to, sender, message, death)
            elif self.run(to, lambda core, now: core.links.receive(sender, *message, now), death, torn):
                self.channels[to, sender].append(self.brokers[to].links[sender].written)

    def send_session(self, node: str, session: str, death: Death = Death.NONE, *, limit: int = 2) -> None:
        """Freeze a departing session, or send its next deliveries."""
        departures = self.brokers[node].handovers.departures
        if not departures[session].frozen:
            self.run(node, lambda core, now: core.handovers.departures.freeze(session, now), death)
            return
        waiting = departures.next_deliveries(session, limit)
        entries = {entry.position: entry for entry in self.disks[node].log}
        self.run(
            node,
            lambda core, now: core.handovers.departures.send_deliveries(session, waiting, entries, now),
            death,
        )

    def send_replica(self, node: str, session: str, holder: str, death: Death = Death.NONE) -> None:
        ticket, waiting = self.brokers[node].replicas.next_deliveries(session, holder, 2)
        entries = {entry.position: entry for entry in self.disks[node].log}
        upto = waiting[-1][0] if len(waiting) == 2 else None
        part = ReplicaPart(session, holder, ticket, stored_deliveries(waiting, entries), upto)
        self.run(node, lambda core, _: core.replicas.send_part(part), death)

    def settle(self, most: int = MOST_ACTIONS) -> None:
        """Let all clients come back, and everything happen that can."""
        for client in self.clients.values():
            if not client.connected and client.waits_at is None:
                client.waits_at = client.home
        self.drain(most)
        assert all(action.method == "deliver_unnumbered" for action in self.actions()), "no rest"

    def drain(self, most: int = MOST_ACTIONS) -> None:
        """Let everything happen; unnumbered messages come with time, and never end."""
        for turn in range(most):
            actions = self.actions()
            unnumbered = [action for action in actions if action.method == "deliver_unnumbered"]
            if unnumbered:
                self.perform(unnumbered[turn % len(unnumbered)])
            waiting = [action for action in actions if action.method == "claim"]
            busy = [action for action in actions if action not in (*unnumbered, *waiting)]
            if not busy and not waiting:
                return
            action = (busy or waiting)[turn % len(busy or waiting)]  # a claim is in vain while much is on the way
            if action in self.actions():
                self.perform(action)

    def fail_for_good(self, node: str, refuge: str, holder: str) -> None:
        """Let a leaf of the overlay fail for good; its clients go to a refuge, where the holder takes over."""
        self.settle()
        self.dead.add(node)
        mine = [client for client in self.clients.values() if client.home == node]
        for client in mine:
            client.connected, client.waits_at = False, refuge
            self.claim(client.name)
        self.drain(200)
        for client in mine:
            if client.waits_at is not None:
                self._take_over(client.name, refuge, holder, f"t{next(self.tickets)}")
        self.settle()

    def _take_over(self, name: str, at: str, holder: str, ticket: str) -> None:
        self.run(at, lambda core, now: core.handovers.arrivals.take_over(name, holder, ticket, now))


def _behind(links: Links, here: str, neighbour: str) -> set[str]:
    """Return all nodes that are reached through a neighbour."""
    near: dict[str, set[str]] = {}
    for a, b, _ in links:
        near.setdefault(a, set()).add(b)
        near.setdefault(b, set()).add(a)
    found, todo = {neighbour}, [neighbour]
    while todo:
        new = near[todo.pop()] - found - {here}
        found |= new
        todo += new
    return found
