"""A network in a box: brokers, links and clients in virtual time.

A broker is a server that takes one message after another. Each step - a message or a tick - is atomic: the broker is
called, what happened is recorded, and its answers go out on links or to local clients. A client is part of its broker's
machine: what it says is heard at once and nothing of it is lost, but when the broker is down it is cut off.

Which links there should be, which brokers run, and how the network is parted are kept apart; a link is up when all
three allow it. Everything that is left to chance comes from one seed, so the same run happens again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from random import Random
from typing import Any, Generic, TypeAlias

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import (
    Advertise,
    Connect,
    Deliver,
    Disconnect,
    FilterUpdate,
    Forward,
    InterestUpdate,
    Leave,
    Message,
    Publish,
    Refuse,
    Role,
    Send,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from fieldfare.protocol.wire import encode
from fieldfare.simulation import trace as records
from fieldfare.simulation.clock import Action, VirtualClock
from fieldfare.simulation.counters import Traffic, Work, add_up
from fieldfare.simulation.host import Cable, M, Processing, Site, Skew, cost_of
from fieldfare.simulation.links import PLAIN, Wire
from fieldfare.simulation.topologies import Topology
from fieldfare.simulation.trace import Record

Wires: TypeAlias = Wire | Callable[[str, str], Wire]
"""what links are made of: all the same, or by their ends"""


class Network(Generic[M]):
    """Brokers, made by a function of their names, with links between them and clients at them.

    Names are given to clients and brokers alike, so no client is named as a broker is.
    """

    def __init__(
        self,
        make_broker: Callable[[str], M],
        topology: Topology,
        *,
        restore: Callable[[str, bytes], M] | None = None,
        links: Wires = PLAIN,
        processing: Processing = None,
        skews: Mapping[str, Skew] | None = None,
        seed: int = 0,
        record: bool = True,
        lazy: bool = False,
        hear: Callable[[str, Message], object] | None = None,
        count_bytes: bool = False,
        mesh: bool = False,
    ) -> None:
        """Start all brokers and bring up all links.

        Args:
            make_broker: makes a broker that knows nothing.
            topology: the brokers and links at the start.
            restore: makes a broker from its snapshot.
            links: what they are made of.
            processing: how long a broker works on a message.
            skews: which brokers' clocks are wrong, and how.
            seed: of all chance.
            record: whether to keep a trace; large runs have only the counters.
            lazy: whether brokers put work off to their next tick, so that the network is not quiet before it. Otherwise
                ticks are upkeep that goes on for ever, and nobody waits for them.
            hear: is called with what each client is told, after the step in which it is; a client may answer then.
            count_bytes: whether to measure messages as they would be on a wire.
            mesh: whether any broker reaches any other without a link of the topology, as in a DHT. Who has sent
                something to a broker that then crashes hears of it.
        """
        self.clock = VirtualClock()
        self.trace: list[Record] = []
        self.traffic: defaultdict[tuple[str, str], Traffic] = defaultdict(Traffic)
        """by sender and receiver, as long as the network lives"""
        self._make = make_broker
        self._restore = restore
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
        self._sequences: dict[str, int] = {}
        self._clients: dict[str, str] = {}
        self._away: set[str] = set()
        self._arriving: dict[str, Message] = {}
        """what clients say first at a broker; until it has heard that, it does not reach them"""
        self.taken: dict[str, int] = {}
        """the number of the last delivery that each client has got, if its broker counts them"""
        self._group: dict[str, int] = {}
        self._wanted = {(a, b): role for a, b, role in topology.edges}
        self._up: dict[tuple[str, str], tuple[Cable[M], Cable[M]]] = {}
        self._sites: dict[str, Site[M]] = {name: self._site(name, make_broker(name)) for name in topology.brokers}
        self._adjust(self._wanted)
        self._mark()

    def _site(self, name: str, broker: M, work: Work | None = None) -> Site[M]:
        return Site(name, broker, self._skews.get(name), Work() if work is None else work)

    # Looking

    @property
    def now(self) -> float:
        """The virtual time."""
        return self.clock.now

    @property
    def brokers(self) -> Mapping[str, M]:
        """The brokers by name; a crashed one as it was."""
        return {name: site.broker for name, site in self._sites.items()}

    @property
    def work(self) -> Mapping[str, Work]:
        """What each broker had to do."""
        return {name: site.work for name, site in self._sites.items()}

    def total_traffic(self) -> Traffic:
        """What was sent over all links."""
        return add_up(self.traffic.values(), Traffic())

    def total_work(self) -> Work:
        """What all brokers had to do."""
        return add_up((site.work for site in self._sites.values()), Work())

    def table_sizes(self) -> dict[str, int]:
        """How large the routing tables are, of brokers that tell it."""
        sizes = ((name, getattr(site.broker, "entries", None)) for name, site in self._sites.items())
        return {name: size for name, size in sizes if size is not None}

    def is_up(self, broker: str, neighbour: str | None = None) -> bool:
        """Whether a broker runs, or its link to a neighbour is up."""
        if neighbour is None:
            return self._sites[broker].up
        return (broker, neighbour) in self._up or (neighbour, broker) in self._up

    @property
    def quiet(self) -> bool:
        """Whether no message is under way."""
        return self.clock.pending == self._planned

    # Clients

    def attach(self, client: str, broker: str) -> None:
        """A client comes to a broker; of one that was elsewhere, the former broker is told nothing."""
        if client in self._sites:
            raise ValueError(f"{client} is the name of a broker")
        if broker not in self._sites:
            raise ValueError(f"there is no broker {broker}")
        self._clients[client] = broker
        if client in self._away:
            self._away.discard(client)
            self._note(records.Arrived, broker, client)

    def detach(self, client: str) -> None:
        """A client is gone, and tells nobody."""
        self._arriving.pop(client, None)
        self._away.add(client)
        self._note(records.Departed, self._clients.pop(client), client)

    def move(self, client: str, to: str, message: Message) -> bool:
        """A client goes from where it is, if it is anywhere, to a broker, and says something there."""
        if client in self._clients:
            self.detach(client)
        self.attach(client, to)
        self._arriving[client] = message
        return self.say(client, message)

    def where(self, client: str) -> str | None:
        """The broker of a client, if it is at one."""
        return self._clients.get(client)

    def subscribe(self, client: str, id: str, filter: Filter | str) -> bool:
        """A client asks for events. This and the others say whether there was a broker to hear it."""
        return self.say(client, Subscribe(id, parse(filter) if isinstance(filter, str) else filter))

    def unsubscribe(self, client: str, id: str) -> bool:
        """A client asks no more."""
        return self.say(client, Unsubscribe(id))

    def advertise(self, client: str, id: str, filter: Filter | str) -> bool:
        """A client promises events."""
        return self.say(client, Advertise(id, parse(filter) if isinstance(filter, str) else filter))

    def unadvertise(self, client: str, id: str) -> bool:
        """A client takes a promise back."""
        return self.say(client, Unadvertise(id))

    def publish(self, client: str, event: Event | Mapping[str, object]) -> bool:
        """A client publishes an event."""
        sequence = self._sequences[client] = self._sequences.get(client, 0) + 1
        return self.say(client, Publish(event if isinstance(event, Event) else Event(event), sequence))

    def leave(self, client: str) -> bool:
        """A client leaves its broker; it may come back."""
        return self.say(client, Leave())

    def say(self, client: str, message: Message) -> bool:
        """A client says anything; one that is away has nobody to hear it."""
        if client in self._away:
            return False
        site = self._sites[self._clients[client]]
        if site.up:
            self._take(site, message, client)
            self._mark()
        return site.up

    # Faults and changes

    def connect(self, a: str, b: str, role: Role = Role.PEER) -> None:
        """Let there be a link; the role is what b is to a."""
        if a == b or a not in self._sites or b not in self._sites:
            raise ValueError(f"{a} – {b}: a link joins two brokers")
        if (a, b) in self._wanted or (b, a) in self._wanted:
            raise ValueError(f"{a} – {b}: there is a link already")
        self._wanted[a, b] = role
        self._adjust([(a, b)])
        self._mark()

    def disconnect(self, a: str, b: str) -> None:
        """Let there be no link."""
        edge = (a, b) if (a, b) in self._wanted else (b, a)
        if edge not in self._wanted:
            raise ValueError(f"{a} – {b}: there is no link, or it is down already")
        del self._wanted[edge]
        self._adjust([edge])
        self._mark()

    def add_broker(self, name: str) -> None:
        """One more broker, without links yet."""
        if name in self._sites or name in self._clients:
            raise ValueError(f"{name} is a name in use")
        self._sites[name] = self._site(name, self._make(name))

    def introduce(self, broker: str, other: str) -> None:
        """Tell a broker of another one, through which it may join those that it can reach."""
        self._take(self._sites[broker], Connect(), other)
        self._mark()

    def crash(self, broker: str) -> None:
        """A broker stops; its links go down, and what waited there is lost."""
        site = self._sites[broker]
        if not site.up:
            raise ValueError(f"{broker} is down already")
        site.up = False
        self._note(records.Crashed, broker)
        self._adjust(self._edges(broker))
        for other in self._sites.values() if self._mesh else ():
            if other.up and broker in other.links:
                other.links[broker].up = False
                self._take(other, Disconnect(), broker)
        self._mark()

    def restart(self, broker: str, snapshot: bytes | None = None) -> None:
        """A broker comes back, with what a snapshot says or with nothing; then its links come up."""
        old = self._sites[broker]
        if old.up:
            raise ValueError(f"{broker} is not down")
        if snapshot is None:
            machine = self._make(broker)
        elif self._restore is None:
            raise ValueError("this network was not told how to restore a broker")
        else:
            machine = self._restore(broker, snapshot)
        site = self._sites[broker] = self._site(broker, machine, old.work)
        self._note(records.Restarted, broker, snapshot is not None)
        self._wake(site)
        self._adjust(self._edges(broker))
        self._mark()

    def partition(self, *groups: Iterable[str]) -> None:
        """Part the network: only links within a group stay up. Brokers that are in none are a group of their own."""
        self._group = {broker: number for number, group in enumerate(groups, 1) for broker in group}
        self._adjust(self._wanted)
        self._mark()

    def heal(self) -> None:
        """End the partition."""
        self.partition()

    def _edges(self, broker: str) -> list[tuple[str, str]]:
        return [edge for edge in self._wanted if broker in edge]

    def _adjust(self, edges: Iterable[tuple[str, str]]) -> None:
        """Bring links up or down as they should be."""
        for a, b in list(edges):
            role = self._wanted.get((a, b))
            together = self._group.get(a, 0) == self._group.get(b, 0)
            wanted = role is not None and together and self._sites[a].up and self._sites[b].up
            if role is not None and wanted and (a, b) not in self._up:
                self._bring_up(a, b, role)
            elif not wanted and (a, b) in self._up:
                self._bring_down(a, b)

    def _bring_up(self, a: str, b: str, role: Role) -> None:
        wire = self._wire(a, b)
        there, back = self._cable(a, b, wire), self._cable(b, a, wire)
        self._up[a, b] = there, back
        self._note(records.Up, a, b)
        self._take(self._sites[a], Connect(role), b, there)
        self._take(self._sites[b], Connect(role.opposite), a, back)

    def _bring_down(self, a: str, b: str) -> None:
        for link in self._up.pop((a, b)):
            link.up = False
        self._note(records.Down, a, b)
        for broker, neighbour in ((a, b), (b, a)):
            if self._sites[broker].up:
                self._take(self._sites[broker], Disconnect(), neighbour)

    def _cable(self, a: str, b: str, wire: Wire) -> Cable[M]:
        """Each direction has its own chance, so that what happens on one link does not change another."""
        if (a, b) not in self._randoms:
            self._randoms[a, b] = Random(f"{self._seed} {a} {b}")
        return Cable(a, self._sites[b], wire, self._randoms[a, b], self.traffic[a, b])

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
