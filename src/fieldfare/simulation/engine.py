"""The engine of a simulated network: each step of a broker, the messages on links, ticks, and the trace.

A broker is a server that processes one message after another. Each step - a message or a tick - is atomic: the broker
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
from fieldfare.simulation.host import Cable, M, Processing, Site, Skew, cost_of
from fieldfare.simulation.links import Wire
from fieldfare.simulation.trace import Record

Wires: TypeAlias = Wire | Callable[[str, str], Wire]
"""the wire of all links, or a function that returns the wire between two brokers"""


class Engine(Generic[M]):
    """Brokers and cables in virtual time; `Network` adds clients, links that come and go, and faults."""

    def __init__(
        self,
        *,
        links: Wires,
        processing: Processing,
        skews: Mapping[str, Skew] | None,
        seed: int,
        record: bool,
        lazy: bool,
        hear: Callable[[str, Message], object] | None,
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
        self._sites: dict[str, Site[M]] = {}
        self._wire = links if callable(links) else lambda _a, _b: links
        self._cost = cost_of(processing)
        self._skews = dict(skews or {})
        self._seed = seed
        self._randoms: dict[tuple[str, str], Random] = {}
        self._record = record
        self._schedule_tick = self.clock.schedule if lazy else self.clock.schedule_background
        self._hear = hear
        self._count_bytes = count_bytes
        self._mesh = mesh
        self._planned = 0
        self._clients: dict[str, str] = {}
        self._arriving: dict[str, Message] = {}
        """the first message of each client at its new broker; until the broker has processed the message, no delivery
        reaches the client"""

    @property
    def now(self) -> float:
        """The virtual time."""
        return self.clock.now

    @property
    def quiet(self) -> bool:
        """Whether no message is under way."""
        return self.clock.pending == self._planned

    def _site(self, name: str, broker: M, work: Work | None = None) -> Site[M]:
        return Site(name, broker, self._skews.get(name), Work() if work is None else work)

    # Time

    def at(self, time: float, action: Action, *arguments: object) -> None:
        """Do something at a time."""
        self._planned += 1
        self.clock.schedule(time, self._do, action, arguments)

    def _do(self, action: Action, arguments: tuple[object, ...]) -> None:
        self._planned -= 1
        action(*arguments)
        self._mark()

    def run(self, until: float) -> None:
        """Let time pass up to a moment."""
        self.clock.run(until)

    def settle(self) -> None:
        """Run until nothing is under way or planned; unless brokers are lazy, nobody waits for their next ticks."""
        self.clock.settle()

    def _cable(self, a: str, b: str, wire: Wire) -> Cable[M]:
        """Each direction has its own chance, so that what happens on one link does not change another."""
        if (a, b) not in self._randoms:
            self._randoms[a, b] = Random(f"{self._seed} {a} {b}")
        return Cable(a, self._sites[b], wire, self._randoms[a, b], self.traffic[a, b])

    # The step

    def _arrive(self, link: Cable[M], message: Message) -> None:
        """A message gets to the end of a link."""
        if not link.up:
            link.traffic.lost += 1
        elif self._cost is None:
            self._process(link.end, message, link.source, None)
        else:
            self._take(link.end, message, link.source)
        if self._record:
            self._mark()

    def _take(self, site: Site[M], message: Message, sender: str, link: Cable[M] | None = None) -> None:
        """A message gets to a broker that runs, and waits until it is done with those before."""
        if self._cost is None:
            self._process(site, message, sender, link)
            return
        site.busy = max(site.busy, self.clock.now) + self._cost(message, site.broker)
        self.clock.schedule(site.busy, self._serve, site, message, sender, link)

    def _serve(self, site: Site[M], message: Message, sender: str, link: Cable[M] | None) -> None:
        if site.up:
            self._process(site, message, sender, link)
        self._mark()

    def _process(self, site: Site[M], message: Message, sender: str, link: Cable[M] | None) -> None:
        """A broker's step: the message, and what comes of it."""
        site.work.received += 1
        now = self.clock.now if site.skew is None else site.local(self.clock.now)
        broker = site.broker
        if type(message) is Forward:  # by far the most
            effects = broker.receive(message, sender, now)
        else:
            if link is not None:
                site.links[sender] = link
            elif type(message) is Disconnect:
                site.links.pop(sender, None)
            if self._arriving and self._arriving.get(sender) is message:
                del self._arriving[sender]
            effects = broker.receive(message, sender, now)
            self._note_said(site, message, sender, effects)
        if effects:
            self._send(site, effects)
        if broker.wakes is not None:
            self._wake(site)

    def _note_said(self, site: Site[M], message: Message, client: str, effects: Sequence[Send]) -> None:
        """What a client said, in the same step as its consequences but before them."""
        if type(message) is Publish:
            site.work.published += 1
        if not self._record or any(e.to == client and type(e.message) is Refuse for e in effects):
            return
        name = site.name
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

    def _send(self, site: Site[M], effects: Sequence[Send]) -> None:
        clock, links, fast = self.clock, site.links, not self._count_bytes
        for effect in effects:
            message = effect.message
            link = links.get(effect.to)
            if link is None and self._mesh and effect.to in self._sites:
                if not self._sites[effect.to].up:
                    self.clock.schedule(self.clock.now, self._unreachable, site, effect.to)
                    continue
                link = links[effect.to] = self._cable(site.name, effect.to, self._wire(site.name, effect.to))
            if link is None:
                self._hand_over(site, effect.to, message)
                continue
            if type(message) is Forward:
                link.traffic.events += 1
                if self._record:
                    self._note(records.Forwarded, site.name, effect.to, message.publisher, message.sequence)
            else:
                self._count(link, message)
            if fast and link.latency is not None:
                clock.schedule(clock.now + link.latency, self._arrive, link, message)
            else:
                self._transmit(link, message)

    def _unreachable(self, site: Site[M], broker: str) -> None:
        if site.up:
            self._take(site, Disconnect(), broker)
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

    def _hand_over(self, site: Site[M], client: str, message: Message) -> None:
        """A client gets a message; one that has gone elsewhere, or a neighbour whose link is down, does not."""
        if self._clients.get(client) != site.name or client in self._arriving:
            self.traffic[site.name, client].lost += 1
            return
        if type(message) is Deliver and message.number:
            if message.number <= self.taken.get(client, 0):
                return  # it has got that before
            self.taken[client] = message.number
        if self._hear is not None:
            self.clock.schedule(self.clock.now, self._answer, client, message)
        if type(message) is Deliver:
            site.work.delivered += 1
            if self._record:
                said = message.publisher, message.sequence, message.event, message.subscriptions
                self._note(records.Delivered, site.name, client, *said)
        elif type(message) is Refuse:
            site.work.refused += 1
            if self._record:
                self._note(records.Refused, site.name, client, message.about, message.reason)

    def _answer(self, client: str, message: Message) -> None:
        assert self._hear is not None
        self._hear(client, message)
        self._mark()

    # Ticks

    def _wake(self, site: Site[M]) -> None:
        """See to it that the broker gets its next tick when it wants it."""
        wakes = site.broker.wakes
        if wakes is None:
            return
        time = max(self.clock.now, wakes if site.skew is None else site.skew.true(wakes))
        if time < site.alarm:
            site.alarm = time
            self._schedule_tick(time, self._tick, site, time)

    def _tick(self, site: Site[M], due: float) -> None:
        wakes = site.broker.wakes
        if due != site.alarm or not site.up:
            return  # an earlier one has taken its place
        site.alarm = inf
        if wakes is not None:
            now = site.local(self.clock.now)
            if site.skew is not None and now < wakes and site.skew.true(wakes) <= self.clock.now:
                now = site.shown = wakes  # the same moment but for rounding
            if now >= wakes:
                site.work.ticks += 1
                self._send(site, site.broker.tick(now))
        self._wake(site)
        self._mark()

    # The trace

    def _note(self, kind: type[Any], *fields: object) -> None:
        if self._record:
            self.trace.append(kind(self.clock.now, len(self.trace), *fields))

    def _mark(self) -> None:
        if self._record and self.quiet and not (self.trace and type(self.trace[-1]) is records.Quiet):
            self._note(records.Quiet)
