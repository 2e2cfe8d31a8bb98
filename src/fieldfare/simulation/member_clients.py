"""`SessionMember`, a member of a session; and `MemberClient`, a worker that acknowledges deliveries in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fieldfare.events import msgpack
from fieldfare.protocol import frames as f
from fieldfare.simulation import trace as records
from fieldfare.simulation.core_clients import DurableClient, Line
from fieldfare.simulation.detections import traced_name
from fieldfare.simulation.member_connections import MemberConnection, MemberDeliveries
from fieldfare.simulation.pipes import Pipe

if TYPE_CHECKING:
    from fieldfare.simulation.core_host import CoreHost
    from fieldfare.simulation.core_network import CoreNetwork

CREDIT = 3
"""deliveries that a member may hold; few, so that members must wait for each other"""
LONGEST_LAG = 2.0
"""seconds; members that wait for each other would not come to rest otherwise"""


class SessionMember(DurableClient):
    """A member of a session, worker or device; the first member subscribes for all."""

    def __init__(self, network: CoreNetwork, session: str, label: str, home: str, *, lag: float) -> None:
        super().__init__(network, session, home, lag=lag)
        self.label = label
        self.random = network.random_of(f"{session} {label}")

    def detach(self) -> None:
        """Go away for a while; the other members stay."""
        if not self.away:
            self.away = True
            self._hang_up()

    def attach(self, node: str = "", *, make_before_break: bool = False) -> None:
        """Come to a node; a member has a single connection."""
        del make_before_break
        if node:
            self.home = node
        if not self.away and self.line is not None and self.line.open and self.line.node == self.home:
            return
        self.away = False
        self._hang_up()
        self._dial()


class MemberClient(SessionMember):
    """A member that takes turns with others, and acknowledges each delivery by itself."""

    def __init__(self, network: CoreNetwork, session: str, label: str, home: str, *, key: str, lag: float) -> None:
        super().__init__(network, session, label, home, lag=min(lag, LONGEST_LAG))
        self.key = key
        self._held: set[int] = set()
        self._peer: MemberConnection | None = None

    def connection_at(self, host: CoreHost, out: Pipe) -> MemberConnection:
        """Return the node's side of a new connection."""
        self._peer = MemberConnection(host, self.name, self.label, out)
        return self._peer

    def hello(self) -> f.Hello:
        """Return the first frame of a connection."""
        about = {"at": self.node, "identity": self.identity, "replicas": self.replicas, "moves": self.moves}
        return f.Hello(session=self.name, credit=CREDIT, shared=True, member=self.label, key=self.key, **about)  # type: ignore[arg-type]

    def _hang_up(self) -> None:
        if self.line is not None:
            self._gone()
        super()._hang_up()

    def lost(self, line: Line) -> None:
        """Note the end of a connection; the deliveries there go to others."""
        if line is self.line:
            self._gone()
        super().lost(line)

    def _gone(self) -> None:
        self._held = set()
        self.network.record(records.MemberGone, self.home, self.name, self.label)

    def _deliver(self, items: Any, node: str) -> None:
        assert isinstance(items, MemberDeliveries)
        for one in items.items:
            event, again = msgpack.decode(one.event), one.number in items.redelivered
            name = traced_name(one.publisher, one.by)
            about = name, one.sequence, event, one.subscriptions, self.label, again
            self.network.record(records.DeliveredToMember, node, self.name, *about)
            self._held.add(one.number)
            if self.lag:
                clock = self.network.clock
                seconds = self.lag * self.random.random()
                clock.schedule_background(clock.now + seconds, self._acknowledge, self.line, one.number)
            else:
                self._acknowledge(self.line, one.number)
        if self._peer is not None and not self._peer.open:  # all of this was sent before the end, and goes to others
            self._gone()

    def _acknowledge(self, line: Line | None, number: int) -> None:
        if line is self.line and number in self._held:
            self._held.discard(number)
            self._send(f.Acknowledge(0, (number,)))
            self._send(f.Credit(1))

    def acknowledge(self) -> None:
        """Acknowledge all deliveries of the member."""
        for number in sorted(self._held):
            self._acknowledge(self.line, number)
