"""`CoreNetwork`: nodes with durable state in virtual time, on simulated disks, links and clocks.

Every node runs `fieldfare.core`, by the inputs of a real node and nothing else. A run is a function of the seed and of
the calls here. Links and connections may break, silently or not, in one direction or both; nodes are killed between any
two steps of a write; disks are slow, full or damaged; clocks jump.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple

from fieldfare.core.core import Core
from fieldfare.mobility.publisher_policies import SAFE, PublisherPolicy
from fieldfare.protocol import wire
from fieldfare.protocol.journal import JournalEntry
from fieldfare.protocol.messages import FilterUpdate
from fieldfare.protocol.versions import NEWEST
from fieldfare.routing.places import Places
from fieldfare.routing.strategies import COVERING, Strategy
from fieldfare.simulation import trace as records
from fieldfare.simulation.clock import Action, VirtualClock
from fieldfare.simulation.core_clients import DurableClient, Line
from fieldfare.simulation.core_connections import ClientConnection
from fieldfare.simulation.core_host import CoreHost
from fieldfare.simulation.core_links import LinkEnd
from fieldfare.simulation.core_rest import unrest
from fieldfare.simulation.counters import Traffic, Work
from fieldfare.simulation.disk import Disk, DiskDamaged, Stage
from fieldfare.simulation.links import Wire, uniform
from fieldfare.simulation.pipes import Pipe
from fieldfare.simulation.story import Note, sentence
from fieldfare.simulation.topologies import Topology
from fieldfare.simulation.trace import Record
from fieldfare.tables.shared_index import SharedIndex

RETRY = 0.1
"""seconds between two attempts to link"""
NOTICE = 0.5
"""seconds after which the end of a silent connection is noticed, at most"""
NEAR = Wire(uniform(0.0005, 0.002))
"""between a client and its node"""


class Options(NamedTuple):
    """Strategy, replicas and memory of every node in a network."""

    strategy: Strategy = COVERING
    replicas: int = 0
    remember: float = 60.0
    """seconds for which a broker remembers events; with a small number, the numbers of messages alone must do"""
    shared: SharedIndex | None = None
    """index of the filters of all nodes; None: each node has its own"""
    places: Places = Places()
    publishers: PublisherPolicy = SAFE
    proxies: tuple[str, ...] = ()
    """nodes that advertise for all publishers, if the policy has proxies"""


class CoreNetwork:
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
        self.options, self.make_core = options, make_core
        self.clock = VirtualClock()
        self.trace: list[Record] = []
        self.problems: list[str] = []
        """breaches of the rules between the parts of the network, which no trace shows"""
        self.traffic: defaultdict[tuple[str, str], Traffic] = defaultdict(Traffic)
        self.work: dict[str, Work] = {name: Work() for name in topology.brokers}
        self.steps = 0
        self.clients: dict[str, DurableClient] = {}
        self.disks = {name: Disk() for name in topology.brokers}
        self.speaks = dict.fromkeys(topology.brokers, NEWEST)
        """highest version that each node speaks, from its next start on"""
        self.lost: set[str] = set()
        """nodes that have failed for good"""
        self.down: set[str] = set()
        self._story, self._detailed = story, detailed
        self._wire, self._seed = wire, seed
        self._randoms: dict[str, Random] = {}
        self._fresh: defaultdict[str, int] = defaultdict(int)
        self._ahead: dict[str, float] = dict.fromkeys(topology.brokers, 0.0)
        self._cut: set[tuple[str, str]] = set()
        """directions in which no frame passes"""
        self._group: dict[str, int] = {}
        self._ends: dict[tuple[str, str], LinkEnd] = {}
        self._lines: dict[str, list[tuple[Line, ClientConnection]]] = {name: [] for name in topology.brokers}
        self.planned = 0
        """actions that are planned, and no sign of unrest"""
        self.edges = {(a, b): role for a, b, role in topology.edges}
        self.hosts = {name: CoreHost(self, name, self.disks[name]) for name in topology.brokers}
        for a, b in self.edges:
            self._dial_link(a, b)

    # Chance, clocks and names

    def random_of(self, name: str) -> Random:
        """Return the random generator of a part: a change in a part changes no other part."""
        if name not in self._randoms:
            self._randoms[name] = Random(f"{self._seed} {name}")
        return self._randoms[name]

    def fresh(self, about: str) -> str:
        """Return a unique name, made of a word and a count."""
        self._fresh[about] += 1
        return f"{about}/{self._fresh[about]}"

    def wall(self, node: str) -> float:
        """Return the time of a node's wall clock, which may jump."""
        return 1e9 + self.clock.now + self._ahead[node]

    def jump(self, node: str, seconds: float) -> None:
        """Let the wall clock of a node jump."""
        self.note(node, f"its clock jumps by {seconds:.1f} s")
        self._ahead[node] += seconds

    # Records

    def record(self, kind: type[Any], *fields: object) -> None:
        """Add a record to the trace."""
        self.trace.append(kind(self.clock.now, len(self.trace), *fields))
        if self._story is not None:
            self._story.append(Note(self.clock.now, *sentence(self.trace[-1])))

    def note(self, who: str, text: str) -> None:
        """Add a sentence to the story."""
        if self._story is not None:
            self._story.append(Note(self.clock.now, who, text))

    def problem(self, text: str) -> None:
        """Note a breach of the rules."""
        self.problems.append(text)
        self.note("", text)

    def refused(self, node: str, session: str, reason: str) -> None:
        """Record the refusal of a request."""
        self.work[node].refused += 1
        self.record(records.Refused, node, session, "", reason)

    def forwarded(self, node: str, neighbour: str, entry: JournalEntry) -> None:
        """Count an event between nodes."""
        self.traffic[node, neighbour].events += 1
        if self._detailed:
            self.record(records.Forwarded, node, neighbour, entry.publisher, entry.sequence)

    def told(self, node: str, neighbour: str, message: bytes) -> None:
        """Count a message between nodes that is no event."""
        traffic = self.traffic[node, neighbour]
        update = wire.decode(message) if self._detailed else None
        if isinstance(update, FilterUpdate):
            traffic.admin += 1
            added, removed = len(update.added), len(update.removed)
            traffic.added += added
            traffic.removed += removed
            self.record(records.Told, node, neighbour, update.about, added, removed)
        else:
            traffic.other += 1

    # Links

    def _pipe(self, a: str, b: str, wire: Wire) -> Pipe:
        return Pipe(self.clock, a, b, wire, self.random_of(f"{a} {b}"))

    def reaches(self, a: str, b: str) -> bool:
        """Tell whether a connection between two nodes can be made."""
        parted = self._group.get(a, 0) != self._group.get(b, 0)
        return self.hosts[a].up and self.hosts[b].up and not parted and not {(a, b), (b, a)} & self._cut

    def _dial_link(self, a: str, b: str) -> None:
        """Let a node dial a neighbour without a link, again and again."""
        if a in self.lost or b in self.lost or (a, b) not in self.edges:
            return
        end = self._ends.get((a, b))
        if end is not None and end.open and end.host.up:
            return
        if not self.reaches(a, b):
            self._dial_later(a, b)
            return
        there, back = self._pipe(a, b, self._wire), self._pipe(b, a, self._wire)
        role = self.edges[a, b]
        for one, other, pipe, its in ((a, b, there, role), (b, a, back, role.opposite)):
            self._ends[one, other] = LinkEnd(self.hosts[one], other, its, pipe)
        there.receiver = self._ends[b, a].receive
        back.receiver = self._ends[a, b].receive

    def _dial_later(self, a: str, b: str) -> None:
        self.clock.schedule_background(self.clock.now + RETRY, self._dial_link, a, b)

    def link_is_up(self, node: str, neighbour: str) -> None:
        """Record a link when both ends are up."""
        if self.linked(node, neighbour):
            self.record(records.Up, *self._edge(node, neighbour))

    def link_ended(self, node: str, neighbour: str, *, was_up: bool) -> None:
        """Record the end of a link, as noticed by a node; the dialling node tries again."""
        if was_up:
            self.record(records.Down, *self._edge(node, neighbour))
        if (node, neighbour) in self.edges:
            self._dial_later(node, neighbour)

    def _edge(self, a: str, b: str) -> tuple[str, str]:
        return (a, b) if (a, b) in self.edges else (b, a)

    def linked(self, a: str, b: str) -> bool:
        """Tell whether both ends of a link are up."""
        one, other = self._ends.get((a, b)), self._ends.get((b, a))
        return one is not None and other is not None and one.up and other.up

    def cut(self, a: str, b: str, *, forth: bool = True, back: bool = True) -> None:
        """Break the connection between two nodes silently, in one direction or both, until `heal`."""
        self.note(a, f"no frame {'passes' if forth and back else 'goes' if forth else 'comes'} between it and {b}")
        self._cut |= {(a, b)} if forth else set()
        self._cut |= {(b, a)} if back else set()
        for one, other in ((a, b), (b, a)):
            end = self._ends.get((one, other))
            if end is not None and end.open:
                end.out.up = end.out.up and (one, other) not in self._cut
                self._notice(one, end)

    def _notice(self, node: str, end: LinkEnd) -> None:
        """Let a node notice the end of a silent connection later."""
        time = self.clock.now + NOTICE * self.random_of(node).random()
        self.clock.schedule(time, self._give_up, end)

    def _give_up(self, end: LinkEnd) -> None:
        if end.host.up:
            end.end(quietly=True)

    def break_link(self, a: str, b: str) -> None:
        """Break the connection between two nodes, which may connect again at once."""
        self.cut(a, b)
        self.mend(a, b)

    def is_cut(self, a: str, b: str) -> bool:
        """Tell whether no frame passes between two nodes, in one direction at least."""
        return bool({(a, b), (b, a)} & self._cut)

    def mend(self, a: str, b: str) -> None:
        """Let frames pass between two nodes again."""
        self._cut -= {(a, b), (b, a)}

    def partition(self, *groups: Iterable[str]) -> None:
        """Part the network: only links within a group stay up. Nodes without a group form another group."""
        self._group = {node: number for number, group in enumerate(groups, 1) for node in group}
        for a, b in self.edges:
            if self._group.get(a, 0) != self._group.get(b, 0):
                self.break_link(a, b)

    def heal(self) -> None:
        """Let all frames pass again."""
        self._cut.clear()
        self._group = {}

    # Nodes

    def kill(self, node: str, stage: Stage = Stage.ALL, kept: int = 0, *, seconds: float = 0.0) -> None:
        """Kill a node in the middle of a write, if it writes; it starts again after some seconds."""
        host = self.hosts[node]
        if not host.up:
            return
        self.note(node, f"is killed, with {stage.name.lower()} of its step written; it is back in {seconds:.2f} s")
        self.record(records.Crashed, node)
        self._stop(host, stage, kept)
        self._start_later(node, seconds)

    def kill_later(self, node: str, steps: int, stage: Stage, kept: int, seconds: float) -> None:
        """Kill a node at a stage of the write, after some more steps; some stages need a step with entries."""
        logging = stage in (Stage.TORN, Stage.ENTRIES)
        self.hosts[node].kill_after = steps, logging, lambda: self.kill(node, stage, kept, seconds=seconds)

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
        for (one, other), end in self._ends.items():
            if end.host is host and end.open:
                end.open = end.up = False
                end.out.send(None)
                if (one, other) in self.edges:
                    self._dial_later(one, other)
        for _, connection in self._lines[host.name]:
            if connection.host is host and connection.open:
                connection.open = False
                connection.out.send(None)
        self._lines[host.name] = [(line, one) for line, one in self._lines[host.name] if line.open]

    def start(self, node: str) -> None:
        """Start a node from its disk; after damage an operator repairs the disk first."""
        if self.hosts[node].up or node in self.lost:
            return
        try:
            self.hosts[node] = CoreHost(self, node, self.disks[node])
        except DiskDamaged as damage:
            self.note(node, f"does not start: {damage}")
            self.disks[node].repair()
            self._start_later(node, 0.2)
            return
        self.down.discard(node)
        self.record(records.Restarted, node, True)

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

    def dial(self, client: DurableClient, node: str) -> Line | None:
        """Connect a client to a node; None if the node is down."""
        host = self.hosts[node]
        if not host.up:
            return None
        there, back = self._pipe(client.name, node, NEAR), self._pipe(node, client.name, NEAR)
        line, connection = Line(client, node, there), ClientConnection(host, client.name, back)
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

    # Time

    def at(self, time: float, action: Action, *arguments: object) -> None:
        """Plan an action for a virtual time."""
        self.planned += 1
        self.clock.schedule(time, self._do, action, arguments)

    def _do(self, action: Action, arguments: tuple[object, ...]) -> None:
        self.planned -= 1
        action(*arguments)

    def settle(self, seconds: float = 60.0) -> None:
        """Mend everything, let all clients come back, and let time pass until the network is at rest."""
        self.heal()
        for node, host in self.hosts.items():
            host.kill_after = None
            self.disks[node].full, self.disks[node].seconds = False, 0.0
        for client in self.clients.values():
            if client.away:
                client.attach()
        end = self.clock.now + seconds
        while any(True for _ in unrest(self)):
            if self.clock.now > end:
                self.problem(f"no rest: {', '.join(unrest(self))}")
                return
            self.clock.run(self.clock.now + 0.1)
        self.record(records.Quiet)
