"""`CoreNetwork`: nodes with durable state in virtual time, on simulated disks, links and clocks.

Every node runs `fieldfare.core`, by the inputs of a real node and nothing else. A run is a function of the seed and of
the calls here. Links and connections may break, silently or not, in one direction or both; nodes are killed between any
two steps of a write; disks are slow, full or damaged; clocks jump.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fieldfare.core.channel_map import ChannelMap
from fieldfare.core.core import Core
from fieldfare.core.inputs import EndSession
from fieldfare.core.member_inputs import RemoveDevice
from fieldfare.protocol.versions import NEWEST
from fieldfare.routing.places import Places
from fieldfare.routing.publisher_policies import SAFE, PublisherPolicy
from fieldfare.routing.strategies import COVERING, Strategy
from fieldfare.simulation import trace as records
from fieldfare.simulation.checker.pattern_checks import Standing
from fieldfare.simulation.clock import Action
from fieldfare.simulation.core_clients import DurableClient, Line
from fieldfare.simulation.core_connections import ClientConnection
from fieldfare.simulation.core_host import CoreHost
from fieldfare.simulation.core_rest import unrest
from fieldfare.simulation.core_tree import NOTICE, CoreTree
from fieldfare.simulation.device_clients import DeviceClient
from fieldfare.simulation.disk import Disk, DiskDamaged, DiskFull, Stage
from fieldfare.simulation.domains import Domains
from fieldfare.simulation.links import Wire, uniform
from fieldfare.simulation.member_clients import MemberClient, SessionMember
from fieldfare.simulation.story import Note
from fieldfare.simulation.topologies import Topology
from fieldfare.tables.shared_index import SharedIndex

MAINTENANCE = 5.0
"""seconds without rest after which nodes do what a node does every minute, if a disk has forgotten something"""
NEAR = Wire(uniform(0.0005, 0.002))
"""between a client and its node"""


class Options(NamedTuple):
    """Strategy, replicas and memory of every node in a network."""

    strategy: Strategy = COVERING
    replicas: int = 0
    remember: float = 60.0
    """seconds for which a broker remembers events; with a small number, the numbers of messages alone must do"""
    synced: bool = True
    """whether the disks keep all writes in a power failure, as with `log.sync = "full"`"""
    shared: SharedIndex | None = None
    """index of the filters of all nodes; None: each node has its own"""
    places: Places = Places()
    publishers: PublisherPolicy = SAFE
    proxies: tuple[str, ...] = ()
    """nodes that advertise for all publishers, if the policy has proxies"""
    channels: ChannelMap = ChannelMap()
    domains: Domains = Domains()
    impatient: bool = False
    """whether silence is enough for a take-over; else only of a node that has failed for good"""


class CoreNetwork(CoreTree):
    """Simulated nodes on a tree of links, with clients and faults."""

    def __init__(
        self,
        topology: Topology,
        options: Options = Options(),  # noqa: B008
        *,
        wire: Wire = Wire(uniform(0.001, 0.05)),  # noqa: B008
        seed: int = 0,
        make_core: Callable[..., Core] = Core,
        story: list[Note] | None = None,
        detailed: bool = False,
    ) -> None:
        """Start all nodes, and let the first node of each edge dial.

        All happenings are added to a `story`. A `detailed` trace has the messages between nodes.
        """
        super().__init__(topology, wire, seed, story=story, detailed=detailed)
        self.options, self.make_core = options, make_core
        self.steps = 0
        self.clients: dict[str, DurableClient] = {}
        self.speaks = dict.fromkeys(topology.brokers, NEWEST)
        """highest version that each node speaks, from its next start on"""
        self.oldest = NEWEST
        """lowest of the versions that nodes have spoken so far"""
        self.members: dict[str, SessionMember] = {}
        """workers and devices of shared sessions, by session and label"""
        self.disks = {name: Disk(synced=options.synced) for name in topology.brokers}
        self.down: set[str] = set()
        self.deaf: set[str] = set()
        """clients that hear nothing of their nodes"""
        self.forgot = False
        """whether a disk has lost something that was written"""
        self.numbers: dict[tuple[str, str], int] = {}
        """by client and identity of the session: events that were published under earlier identities"""
        self.stood: dict[str, list[Standing]] = {name: [] for name in topology.brokers}
        """by node: the patterns that have stood there"""
        self._lines: dict[str, list[tuple[Line, ClientConnection]]] = {name: [] for name in topology.brokers}
        self.planned = 0
        """actions that are planned, and no sign of unrest"""
        self.hosts |= {name: CoreHost(self, name, self.disks[name]) for name in topology.brokers}
        for a, b in self.edges:
            self.dial_link(a, b)

    # Nodes

    def kill(
        self, node: str, stage: Stage = Stage.ALL, kept: int = 0, *, seconds: float = 0.0, power: bool = False
    ) -> None:
        """Kill a node in the middle of any write; the node starts again after some seconds.

        With `power`, the machine of the node goes down, and a disk without sync loses its last writes.
        """
        host = self.hosts[node]
        if not host.up:
            return
        self.note(node, f"is killed, with {stage.name.lower()} of its step written; it is back in {seconds:.2f} s")
        self.record(records.Crashed, node)
        self._stop(host, stage, kept)
        if power:
            self.disks[node].copied = True  # the machine has booted since
            if self.disks[node].lose_power(self.random_of(node)):
                self._forgot(node)
        self._start_later(node, seconds)

    def _forgot(self, node: str) -> None:
        self.forgot = True
        self.record(records.Forgot, node)

    def lost_event(self, node: str, position: int, receiver: str) -> None:
        """Note that a log has an event no more: a problem, unless rows are older than the log since a power failure."""
        problem = f"{node} has lost event {position}, which {receiver} has not got"
        if self.forgot:
            self.note(node, problem)
        else:
            self.problem(problem)

    def set_back(self, node: str, seconds: float) -> None:
        """Kill a node; the next start is from the copy of the disk, if any."""
        self.kill(node, seconds=seconds)
        if self.disks[node].restore():
            self._forgot(node)

    def kill_later(
        self, node: str, steps: int, stage: Stage, kept: int, seconds: float, *, power: bool = False
    ) -> None:
        """Kill a node at a stage of the write, after some more steps; some stages need a step with entries."""
        logging = stage in (Stage.TORN, Stage.ENTRIES)
        kill = partial(self.kill, node, stage, kept, seconds=seconds, power=power)
        self.hosts[node].kill_after = steps, logging, kill

    def fill(self, node: str, seconds: float) -> None:
        """Let the disk of a node be full for some seconds."""
        self.note(node, f"has no room on its disk for {seconds:.1f} s")
        self.disks[node].full = True
        self.clock.schedule_background(self.clock.now + seconds, setattr, self.disks[node], "full", False)

    def _start_later(self, node: str, seconds: float) -> None:
        self.down.add(node)
        self.clock.schedule(self.clock.now + seconds, self.start, node)

    def fail(self, node: str, reason: str) -> None:
        """Stop a node that cannot write; a start is tried again and again."""
        self.note(node, f"stops: {reason}")
        self.record(records.Crashed, node)
        random = self.random_of(node)
        self._stop(self.hosts[node], Stage(random.randrange(3)), random.randrange(4))
        self._start_later(node, 0.5)

    def _stop(self, host: CoreHost, stage: Stage, kept: int) -> None:
        host.stop(stage, kept)
        self.drop_links(host)
        for _, connection in self._lines[host.name]:
            if connection.host is host and connection.open:
                connection.open = False
                connection.out.send(None)
        self._lines[host.name] = [(line, one) for line, one in self._lines[host.name] if line.open]

    def start(self, node: str) -> None:
        """Start a node from the disk; after damage an operator repairs the disk first."""
        if self.hosts[node].up or node in self.lost:
            return
        try:
            self.hosts[node] = CoreHost(self, node, self.disks[node])
        except DiskFull as reason:
            self.note(node, f"does not start: {reason}")
            self._start_later(node, 0.2)
            return
        except DiskDamaged as damage:
            self.note(node, f"does not start: {damage}")
            self._mend(node)
            self._start_later(node, 0.2)
            return
        self.down.discard(node)
        self.oldest = min(self.oldest, self.speaks[node])
        self.record(records.Restarted, node, True)

    def _mend(self, node: str) -> None:
        """Let an operator mend a damaged disk: from a mirror, or without it by a salvage, which loses something."""
        if self.options.synced:
            self.disks[node].repair()
        else:
            self.note(node, "is salvaged")
            self.disks[node].salvage()
            self._forgot(node)

    def lose(self, node: str) -> None:
        """Let a node fail for good, with its disk."""
        self.record(records.Crashed, node)
        self._stop(self.hosts[node], Stage.NOTHING, 0)
        self.lost.add(node)

    # Clients

    def add_client(self, name: str, node: str, *, lag: float = 0.0) -> DurableClient:
        """Add a client, who comes to a node."""
        client = self.clients[name] = DurableClient(self, name, node, lag=lag)
        client.attach()
        return client

    def add_member(self, session: str, label: str, node: str, *, key: str = "", lag: float = 0.0) -> MemberClient:
        """Add a worker that shares a session; all members of a session begin at one node."""
        member = self.members[f"{session}.{label}"] = MemberClient(self, session, label, node, key=key, lag=lag)
        member.attach()
        return member

    def add_device(
        self, session: str, label: str, node: str, *, lag: float = 0.0, late: bool = False, oldest: bool = False
    ) -> DeviceClient:
        """Add a device to a session; a late one knows where the others are."""
        device = self.members[f"{session}.{label}"] = DeviceClient(
            self, session, label, node, lag=lag, late=late, oldest=oldest
        )
        device.attach()
        return device

    def remove_device(self, session: str, label: str) -> None:
        """Remove a device at the node of its session; a node that is down or busy with a move forgets the wish."""
        device = self.members.pop(f"{session}.{label}")
        device.detach()
        self.record(records.DeviceRemoved, device.node, session, label)
        self.remove_forgotten_devices()

    def remove_forgotten_devices(self) -> None:
        """Repeat the removals of devices that nodes did not hear of."""
        for name, host in self.hosts.items():
            for session in [one for one in host.core.sessions if host.up and name not in self.lost]:
                for label in host.core.devices.of(session):
                    if f"{session}.{label}" not in self.members:
                        host.submit(RemoveDevice(session, label), lambda _: None)

    def dial(self, client: DurableClient, node: str) -> Line | None:
        """Connect a client to a node; None if the node is down."""
        host = self.hosts[node]
        if not host.up:
            return None
        there, back = self.pipe(client.name, node, NEAR), self.pipe(node, client.name, NEAR)
        line, connection = Line(client, node, there), client.connection_at(host, back)
        there.receiver, back.receiver = connection.receive, line.receive
        self._lines[node] = [*((one, other) for one, other in self._lines[node] if one.open), (line, connection)]
        return line

    def break_line(self, client: DurableClient) -> None:
        """Break the connection of a client; what is on the way is lost."""
        line = client.line
        for one, connection in self._lines[line.node] if line is not None else ():
            if one is line:
                line.out.up = connection.out.up = False
                self.clock.schedule(self.clock.now + NOTICE * client.random.random(), connection.end)
                client.lost(line)

    def deafen(self, client: DurableClient) -> None:
        """Lose all frames that the node sends on the present connection of a client, who does not notice till rest."""
        for one, connection in self._lines[client.node]:
            if one is client.line:
                self.note(client.name, f"hears nothing of {client.node} any more")
                connection.out.up = False
                self.deaf.add(client.name)

    # Time

    def at(self, time: float, action: Action, *arguments: object) -> None:
        """Plan an action for a virtual time."""
        self.planned += 1
        self.clock.schedule(time, self._do, action, arguments)

    def _do(self, action: Action, arguments: tuple[object, ...]) -> None:
        self.planned -= 1
        action(*arguments)

    def _maintain(self) -> None:
        """Do what nodes do every minute, and end outdated copies of sessions, as the refusal tells the operator.

        A session that a node has forgotten begins anew elsewhere, under another identity, and an older disk has it yet.
        """
        for name in sorted(self.hosts.keys() - self.lost):
            self.hosts[name].maintain()
        for client in self.clients.values():
            session = self.hosts[client.home].core.sessions.get(client.name)
            if session is not None and client.identity not in ("", session.identity) and not session.connected:
                self.note(client.home, f"has another session {client.name}, which the operator ends")
                self.hosts[client.home].submit(EndSession(client.name), lambda _: None)

    def settle(self, seconds: float = 60.0, *, reunite: bool = True) -> None:
        """Mend everything, let all clients come back, and let time pass until the network is at rest.

        Unless clients `reunite`, those who are away or deaf stay so, perhaps with something to say: no rest for the
        checker.
        """
        self.heal()
        for node, host in self.hosts.items():
            host.kill_after = None
            self.disks[node].full, self.disks[node].seconds = False, 0.0
        for client in (*self.clients.values(), *self.members.values()):
            if client.away and reunite:
                client.attach()
            elif client.name in self.deaf and reunite:
                self.break_line(client)
        self.deaf = set() if reunite else self.deaf
        end, maintenance = self.clock.now + seconds, self.clock.now + MAINTENANCE
        while any(True for _ in unrest(self, absent=not reunite)):
            if self.clock.now > end:
                self.problem(f"no rest: {', '.join(unrest(self))}")
                return
            if self.forgot and self.clock.now > maintenance:  # only then, since nothing else may need it
                maintenance += MAINTENANCE
                self._maintain()
            self.clock.run(self.clock.now + 0.1)
        if reunite:
            self.record(records.Quiet)
