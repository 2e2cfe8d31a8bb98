"""`CoreTree`: the links between simulated nodes, which break, silently or not, in one direction or both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fieldfare.simulation import trace as records
from fieldfare.simulation.core_links import LinkEnd
from fieldfare.simulation.core_world import CoreWorld
from fieldfare.simulation.links import Wire
from fieldfare.simulation.pipes import Pipe
from fieldfare.simulation.story import Note
from fieldfare.simulation.topologies import Topology

if TYPE_CHECKING:
    from fieldfare.simulation.core_host import CoreHost

RETRY = 0.1
"""seconds between two attempts to link"""
NOTICE = 0.5
"""seconds after which the end of a silent connection is noticed, at most"""
LONG = 20.0
"""seconds for which a node may take a broken connection for alive"""


class CoreTree(CoreWorld):
    """A tree of links; the first node of each edge dials, again and again."""

    def __init__(
        self, topology: Topology, wire: Wire, seed: int, *, story: list[Note] | None = None, detailed: bool = False
    ) -> None:
        """Plan the links of a topology; `hosts` is empty yet."""
        super().__init__(topology.brokers, seed, story=story, detailed=detailed)
        self.edges = {(a, b): role for a, b, role in topology.edges}
        self.hosts: dict[str, CoreHost] = {}
        """the running nodes, and those that will start again"""
        self.lost: set[str] = set()
        """nodes that have failed for good"""
        self._wire = wire
        self._cut: set[tuple[str, str]] = set()
        """directions in which no frame passes"""
        self._slow: dict[tuple[str, str], float] = {}
        """seconds that frames take longer, by direction"""
        self._group: dict[str, int] = {}
        self._ends: dict[tuple[str, str], LinkEnd] = {}

    def pipe(self, a: str, b: str, wire: Wire) -> Pipe:
        """Make one direction of a connection."""
        return Pipe(self.clock, a, b, wire, self.random_of(f"{a} {b}"))

    def reaches(self, a: str, b: str) -> bool:
        """Tell whether a connection between two nodes can be made."""
        parted = self._group.get(a, 0) != self._group.get(b, 0)
        return self.hosts[a].up and self.hosts[b].up and not parted and not {(a, b), (b, a)} & self._cut

    def dial_link(self, a: str, b: str) -> None:
        """Let a node dial a neighbour without a link, again and again."""
        if a in self.lost or b in self.lost or (a, b) not in self.edges:
            return
        end = self._ends.get((a, b))
        if end is not None and end.open and end.host.up:
            return
        if not self.reaches(a, b):
            self._dial_later(a, b)
            return
        there, back = self.pipe(a, b, self._wire), self.pipe(b, a, self._wire)
        role = self.edges[a, b]
        for one, other, pipe, its in ((a, b, there, role), (b, a, back, role.opposite)):
            pipe.delay = self._slow.get((one, other), 0.0)
            self._ends[one, other] = LinkEnd(self.hosts[one], other, its, pipe)
        there.receiver = self._ends[b, a].receive
        back.receiver = self._ends[a, b].receive

    def _dial_later(self, a: str, b: str) -> None:
        self.clock.schedule_background(self.clock.now + RETRY, self.dial_link, a, b)

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

    def drop_links(self, host: CoreHost) -> None:
        """End all connections of a node that stops."""
        for (one, other), end in self._ends.items():
            if end.host is host and end.open:
                end.open = end.up = False
                end.out.send(None)
                if (one, other) in self.edges:
                    self._dial_later(one, other)

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

    def _notice(self, node: str, end: LinkEnd, seconds: float = NOTICE) -> None:
        """Let a node notice the end of a silent connection later."""
        time = self.clock.now + seconds * self.random_of(node).random()
        self.clock.schedule(time, self._give_up, end)

    def _give_up(self, end: LinkEnd) -> None:
        if end.host.up:
            end.end(quietly=True)

    def break_link(self, a: str, b: str) -> None:
        """Break the connection between two nodes, which may connect again at once."""
        self.cut(a, b)
        self.mend(a, b)

    def half_open(self, a: str, b: str) -> None:
        """Break a connection, alive for the second node for long, even after the first has connected again."""
        self.note(a, f"has lost its connection to {b}, which does not notice")
        for node, other, seconds in ((a, b, 0.0), (b, a, LONG)):
            end = self._ends.get((node, other))
            if end is not None and end.open:
                end.out.up = False
                self._notice(node, end, seconds)

    def is_cut(self, a: str, b: str) -> bool:
        """Tell whether no frame passes between two nodes, in one direction at least."""
        return bool({(a, b), (b, a)} & self._cut)

    def slow_down(self, a: str, b: str, seconds: float) -> None:
        """Let all frames from one node to another take longer, until `heal`."""
        self.note(a, f"frames from here to {b} take {seconds:.2f} s longer")
        self._slow[a, b] = seconds
        if (a, b) in self._ends:
            self._ends[a, b].out.delay = seconds

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
        """Let all frames pass again, as fast as usual."""
        self._cut.clear()
        for a, b in self._slow:
            self._ends[a, b].out.delay = 0.0
        self._slow.clear()
        self._group = {}
