"""The engine of a simulated network: each step of a broker, the messages on links, ticks, and the trace.

A broker processes messages in turn. Each step - a message or a tick - is atomic: the broker
is called, the step is recorded, and the broker's answers go out on links or to local clients.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from math import inf
from random import Random
from typing import Any, Generic, TypeAlias

from fieldfare.protocol.messages import (
    Advertise,
    Deliver,
    Disconnect,
    FilterUpdate,
    Forward,
    InterestUpdate,
    Leave,
    Message,
    Publish,
    Refuse,
    Send,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from fieldfare.protocol.wire import encode
from fieldfare.simulation import trace as records
from fieldfare.simulation.clock import Action, VirtualClock
from fieldfare.simulation.counters import Traffic, Work
from fieldfare.simulation.host import Cable, Host, M, Processing, Skew, cost_of
from fieldfare.simulation.links import Wire
from fieldfare.simulation.trace import Record

Wires: TypeAlias = Wire | Callable[[str, str], Wire]
"""the wire of all links, or a function that returns the wire between two brokers"""


class Engine(Generic[M]):
    """Brokers and cables in virtual time; `Network` adds clients, changes of links, and faults."""

    def __init__(
        self,
        *,
        links: Wires,
        processing: Processing,
        skews: Mapping[str, Skew] | None,
        seed: int,
        record: bool,
        lazy: bool,
        on_message: Callable[[str, Message], object] | None,
        count_bytes: bool,
        mesh: bool,
    ) -> None:
        """Make an engine without brokers; `Network` explains the arguments."""
        self.clock = VirtualClock()
        self.trace: list[Record] = []
        self.traffic: defaultdict[tuple[str, str], Traffic] = defaultdict(Traffic)
        """by sender and receiver, as long as the network lives"""
        self.taken: dict[str, int] = {}
        """the number of the last delivery that each client has got, if its broker counts them"""
        self._hosts: dict[str, Host[M]] = {}
        self._wire = links if callable(links) else lambda _a, _b: links
        self._cost = cost_of(processing)
        self._skews = dict(skews or {})
        self._seed = seed
        self._randoms: dict[tuple[str, str], Random] = {}
        self._record = record
        self._schedule_tick = self.clock.schedule if lazy else self.clock.schedule_background
        self._on_message = on_message
        self._count_bytes = count_bytes
        self._mesh = mesh
        self._planned = 0
        self._clients: dict[str, str] = {}
        self._arriving: dict[str, Message] = {}
        """the first message of each client at its new broker; until the broker has processed the message, no delivery
        reaches the client"""

    @property
    def now(self) -> float:
        """The virtual time, in seconds since the start."""
        return self.clock.now

    @property
    def quiet(self) -> bool:
        """Whether no message is under way; planned actions do not count."""
        return self.clock.pending == self._planned

    def _host(self, name: str, broker: M, work: Work | None = None) -> Host[M]:
        return Host(name, broker, self._skews.get(name), Work() if work is None else work)

    # Time

    def at(self, time: float, action: Action, *arguments: object) -> None:
        """Plan an action for a virtual time."""
        self._planned += 1
        self.clock.schedule(time, self._do, action, arguments)

    def _do(self, action: Action, arguments: tuple[object, ...]) -> None:
        self._planned -= 1
        action(*arguments)
        self._mark()

    def run(self, until: float) -> None:
        """Run all steps and actions up to a virtual time."""
        self.clock.run(until)

    def drain(self) -> None:
        """Run until no message is under way and no action planned; only lazy brokers' ticks are waited for."""
        self.clock.drain()

    def _cable(self, a: str, b: str, wire: Wire) -> Cable[M]:
        """Make a cable; each direction has a random generator, so traffic on a link changes no other link."""
        if (a, b) not in self._randoms:
            self._randoms[a, b] = Random(f"{self._seed} {a} {b}")
        return Cable(a, self._hosts[b], wire, self._randoms[a, b], self.traffic[a, b])

    # The step

    def _arrive(self, link: Cable[M], message: Message) -> None:
        """Process or enqueue a message at the end of a link; a link now down has lost the message."""
        if not link.up:
            link.traffic.lost += 1
        elif self._cost is None:
            self._process(link.end, message, link.source, None)
        else:
            self._take(link.end, message, link.source)
        if self._record:
            self._mark()

    def _take(self, host: Host[M], message: Message, sender: str, link: Cable[M] | None = None) -> None:
        """Enqueue a message at a running broker, behind earlier messages; without processing times, process at once."""
        if self._cost is None:
            self._process(host, message, sender, link)
            return
        host.busy = max(host.busy, self.clock.now) + self._cost(message, host.broker)
        self.clock.schedule(host.busy, self._serve, host, message, sender, link)

    def _serve(self, host: Host[M], message: Message, sender: str, link: Cable[M] | None) -> None:
        if host.up:
            self._process(host, message, sender, link)
        self._mark()

    def _process(self, host: Host[M], message: Message, sender: str, link: Cable[M] | None) -> None:
        """Run a broker's step: the message, and the sends it causes."""
        host.work.received += 1
        now = self.clock.now if host.skew is None else host.local(self.clock.now)
        broker = host.broker
        if type(message) is Forward:  # by far the most
            effects = broker.receive(message, sender, now)
        else:
            if link is not None:
                host.links[sender] = link
            elif type(message) is Disconnect:
                host.links.pop(sender, None)
            if self._arriving and self._arriving.get(sender) is message:
                del self._arriving[sender]
            effects = broker.receive(message, sender, now)
            self._note_said(host, message, sender, effects)
        if effects:
            self._send(host, effects)
        if broker.wakes is not None:
            self._wake(host)

    def _note_said(self, host: Host[M], message: Message, client: str, effects: Sequence[Send]) -> None:
        """Record a client's message, in the same step as the consequences but before."""
        if type(message) is Publish:
            host.work.published += 1
        if not self._record or any(e.to == client and type(e.message) is Refuse for e in effects):
            return
        name = host.name
        match message:
            case Publish():
                self._note(records.Published, name, client, message.sequence, message.event)
            case Subscribe():
                self._note(records.Subscribed, name, client, message.id, message.filter)
            case Unsubscribe():
                self._note(records.Unsubscribed, name, client, message.id)
            case Advertise():
                self._note(records.Advertised, name, client, message.id, message.filter)
            case Unadvertise():
                self._note(records.Unadvertised, name, client, message.id)
            case Leave():
                self._note(records.Left, name, client)

    def _send(self, host: Host[M], effects: Sequence[Send]) -> None:
        clock, links, fast = self.clock, host.links, not self._count_bytes
        for effect in effects:
            message = effect.message
            link = links.get(effect.to)
            if link is None and self._mesh and effect.to in self._hosts:
                if not self._hosts[effect.to].up:
                    self.clock.schedule(self.clock.now, self._unreachable, host, effect.to)
                    continue
                link = links[effect.to] = self._cable(host.name, effect.to, self._wire(host.name, effect.to))
            if link is None:
                self._hand_over(host, effect.to, message)
                continue
            if type(message) is Forward:
                link.traffic.events += 1
                if self._record:
                    self._note(records.Forwarded, host.name, effect.to, message.publisher, message.sequence)
            else:
                self._count(link, message)
            if fast and link.latency is not None:
                clock.schedule(clock.now + link.latency, self._arrive, link, message)
            else:
                self._transmit(link, message)

    def _unreachable(self, host: Host[M], broker: str) -> None:
        if host.up:
            self._take(host, Disconnect(), broker)
        self._mark()

    def _count(self, link: Cable[M], message: Message) -> None:
        """Count a message that is no event."""
        if not isinstance(message, FilterUpdate | InterestUpdate):
            link.traffic.other += 1
            return
        added, removed = len(message.added), len(message.removed)
        link.traffic.admin += 1
        link.traffic.added += added
        link.traffic.removed += removed
        about = message.about if isinstance(message, FilterUpdate) else "subscriptions"
        self._note(records.Told, link.source, link.target, about, added, removed)

    def _transmit(self, link: Cable[M], message: Message) -> None:
        size = len(encode(message)) if self._count_bytes or link.wire.bandwidth < inf else 0
        link.traffic.bytes += size
        arrivals = link.arrivals(self.clock.now, size)
        if not arrivals:
            link.traffic.lost += 1
        for time in arrivals:
            self.clock.schedule(time, self._arrive, link, message)

    def _hand_over(self, host: Host[M], client: str, message: Message) -> None:
        """Give a message to a client; a client gone elsewhere, or a neighbour without a link, does not get any."""
        if self._clients.get(client) != host.name or client in self._arriving:
            self.traffic[host.name, client].lost += 1
            return
        if type(message) is Deliver and message.number:
            if message.number <= self.taken.get(client, 0):
                return  # a repeated delivery
            self.taken[client] = message.number
        if self._on_message is not None:
            self.clock.schedule(self.clock.now, self._answer, client, message)
        if type(message) is Deliver:
            host.work.delivered += 1
            if self._record:
                said = message.publisher, message.sequence, message.event, message.subscriptions
                self._note(records.Delivered, host.name, client, *said)
        elif type(message) is Refuse:
            host.work.refused += 1
            if self._record:
                self._note(records.Refused, host.name, client, message.about, message.reason)

    def _answer(self, client: str, message: Message) -> None:
        assert self._on_message is not None
        self._on_message(client, message)
        self._mark()

    # Ticks

    def _wake(self, host: Host[M]) -> None:
        """Schedule the broker's next tick."""
        wakes = host.broker.wakes
        if wakes is None:
            return
        time = max(self.clock.now, wakes if host.skew is None else host.skew.true(wakes))
        if time < host.alarm:
            host.alarm = time
            self._schedule_tick(time, self._tick, host, time)

    def _tick(self, host: Host[M], due: float) -> None:
        wakes = host.broker.wakes
        if due != host.alarm or not host.up:
            return  # an earlier tick has replaced this tick
        host.alarm = inf
        if wakes is not None:
            now = host.local(self.clock.now)
            if host.skew is not None and now < wakes and host.skew.true(wakes) <= self.clock.now:
                now = host.shown = wakes  # the same moment but for rounding
            if now >= wakes:
                host.work.ticks += 1
                self._send(host, host.broker.tick(now))
        self._wake(host)
        self._mark()

    # The trace

    def _note(self, kind: type[Any], *fields: object) -> None:
        if self._record:
            self.trace.append(kind(self.clock.now, len(self.trace), *fields))

    def _mark(self) -> None:
        if self._record and self.quiet and not (self.trace and type(self.trace[-1]) is records.Quiet):
            self._note(records.Quiet)
