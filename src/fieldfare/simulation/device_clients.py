"""`DeviceClient`: one of the devices of a session; and `DeviceConnection`, the side of the node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fieldfare.core.claims import ClaimSession
from fieldfare.core.member_inputs import AcknowledgeByDevice
from fieldfare.core.state import Pending, Session
from fieldfare.protocol import frames as f
from fieldfare.simulation import trace as records
from fieldfare.simulation.core_clients import Line
from fieldfare.simulation.member_clients import SessionMember
from fieldfare.simulation.member_connections import MemberConnection
from fieldfare.simulation.pipes import Pipe

if TYPE_CHECKING:
    from fieldfare.simulation.core_host import CoreHost
    from fieldfare.simulation.core_network import CoreNetwork


WAIT = 5.0
"""seconds: longer than a handover takes, and shorter than a rest"""


class DeviceClient(SessionMember):
    """A device; the first one subscribes for all."""

    def __init__(
        self, network: CoreNetwork, session: str, label: str, home: str, *, lag: float, late: bool, oldest: bool
    ) -> None:
        """Be there from the beginning, or `late`: from now on, or from the `oldest` waiting event on."""
        super().__init__(network, session, label, home, lag=lag)
        self.oldest = oldest
        self._unknown = late
        """whether the node does not know the late device yet"""

    def _dial(self) -> None:
        """Go to the node, knowing where the others are; a new device that waits in vain asks the others again."""
        if self._unknown:
            others = [one for one in self.network.members.values() if one.name == self.name and one.identity]
            self.node = others[0].node if others else ""
            self.network.clock.schedule_background(self.network.clock.now + WAIT, self._ask_again)
        super()._dial()

    def _ask_again(self) -> None:
        if self._unknown and not self.away:
            self._hang_up()
            self._dial()

    def connection_at(self, host: CoreHost, out: Pipe) -> DeviceConnection:
        """Return the node's side of a new connection."""
        return DeviceConnection(host, self.name, self.label, out)

    def hello(self) -> f.Hello:
        """Return the first frame of a connection."""
        return msgspec.structs.replace(super().hello(), device=self.label, oldest=self.oldest)

    def _begin(self, line: Line, welcome: f.Welcome) -> None:
        if self._unknown:
            self._unknown = False
            self.network.record(records.DeviceAdded, welcome.node, self.name, self.label)
        super()._begin(line, welcome)

    def _record_delivered(self, node: str, *about: Any) -> None:
        self.network.record(records.DeliveredToDevice, node, self.name, *about, self.label)


class DeviceConnection(MemberConnection):
    """The side of the node: sends the device its copies."""

    def _attempt(self, hello: f.Hello) -> ClaimSession:
        worker = super()._attempt(hello)
        about = {"seen": hello.seen, "known": hello.lives, "device": hello.device, "oldest": hello.oldest}
        return msgspec.structs.replace(worker, **about)

    def _acknowledged_by(self, session: Session) -> int:
        return self.host.core.devices.of(self.session)[self._label].acknowledged

    def _take(self, now: float) -> list[tuple[int, Pending]]:
        return self.host.core.devices.take(self.session, self._label, self._member, 1000, now)

    def pump(self) -> None:
        """Send the device all deliveries on disk."""
        self._send_next()

    def _handle(self, frame: Any) -> None:
        if isinstance(frame, f.Acknowledge):
            what = AcknowledgeByDevice(self.session, self._label, frame.number, self._identity)
            self.host.submit(what, self._note_refusal)
        else:
            super()._handle(frame)
