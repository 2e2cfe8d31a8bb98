"""`DeviceSender`: the frames of a node to a device of a session, which gets its own copy of each event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fieldfare.core.device_places import Device
from fieldfare.core.losses import Losing
from fieldfare.node.accepted_socket import AcceptedSocket
from fieldfare.node.attachment import Attached
from fieldfare.node.client_sender import ClientSender, Taken
from fieldfare.node.node import Node
from fieldfare.node.security import Principal
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import Codec
from fieldfare.protocol.journal import JournalEntry


class DeviceSender(ClientSender):
    """The sending side of a device's connection."""

    def __init__(
        self,
        node: Node,
        socket: AcceptedSocket,
        codec: Codec[Any],
        principal: Principal,
        attached: Attached,
        *,
        credit: int,
        version: int,
    ) -> None:
        """Send to an attached device; the node does not know any event of a new publisher."""
        super().__init__(node, socket, codec, principal, attached, credit=credit, version=version)
        self._accepted = 0
        self._device, self._member = attached.device, attached.member
        present = self._present
        self._told_dropped = present.warned if present is not None else 0

    @property
    def _present(self) -> Device | None:
        return self._node.core.devices.of(self._name).get(self._device)

    def _take(self, limit: int) -> Taken:
        node = self._node
        return node.core.devices.take(self._name, self._device, self._member, limit, node.clock())

    def _frames(self, taken: Taken, entries: Mapping[int, JournalEntry], session: Losing) -> list[f.Deliveries]:
        """Return deliveries as frames; the device hears of its own losses, and not of those of other devices."""
        return super()._frames(taken, entries, self._present or session)
