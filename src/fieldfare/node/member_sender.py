"""`MemberSender`: the frames of a node to a member of a shared session.

`core.members` decides which member gets a delivery. Any sender of the session gives waiting deliveries to all members,
and wakes the senders with something to take.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from fieldfare.core.keys import keys_of
from fieldfare.core.losses import Losing
from fieldfare.core.member_inputs import LoseDeliveries
from fieldfare.node.accepted_socket import AcceptedSocket
from fieldfare.node.attachment import Attached
from fieldfare.node.client_sender import ClientSender, Taken
from fieldfare.node.node import Node
from fieldfare.node.security import Principal
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import Codec
from fieldfare.protocol.journal import JournalEntry


class MemberSender(ClientSender):
    """The sending side of a member's connection."""

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
        """Send to an attached member; the node does not know any event of a new publisher."""
        super().__init__(node, socket, codec, principal, attached, credit=credit, version=version)
        self._accepted = 0
        self._member = attached.member
        self._redelivered: set[int] = set()
        """Deliveries on the way to the member with a mark."""
        node.core.members.grant(self._name, self._member, self._credit)

    def add_credit(self, more: int) -> None:
        """Let so many more deliveries be given to the member."""
        self._node.core.members.grant(self._name, self._member, more)
        super().add_credit(more)
        self.wake()

    def _take(self, limit: int) -> Taken:
        """Let all members have the waiting deliveries, and return the part of this member."""
        node, members = self._node, self._node.core.members
        without_key, latest = members.without_key(self._name, node.clock()), node.storage.latest
        if not all(pending.position in latest for _, pending in without_key):
            self._reading = node.spawn(self._read_keys(without_key))
            return []
        self._give(without_key, latest)
        taken = members.take(self._name, self._member, limit)
        self._redelivered.update(one.number for one in taken if one.redelivered)
        return [(one.number, one.pending) for one in taken]

    def _give(self, without_key: Taken, entries: Mapping[int, JournalEntry]) -> None:
        members = self._node.core.members
        sharing = members.of(self._name)
        if sharing is not None:
            woken = members.give(self._name, self._node.clock(), keys_of(without_key, entries, sharing.key))
            self._node.shared.wake(self._name, woken - {self._member})

    async def _read_keys(self, without_key: Taken) -> None:
        """Give deliveries whose events are on the disk."""
        try:
            self._give(without_key, await self._node.entries([pending.position for _, pending in without_key]))
        except Exception as error:  # noqa: BLE001 - the owner of the connection raises it
            self.fail(error)
        finally:
            self._reading = None
            self.wake()

    def _frames(self, taken: Taken, entries: Mapping[int, JournalEntry], session: Losing) -> list[f.Deliveries]:
        """Return deliveries as frames with marks, and give up those without a place: nobody else could send them."""
        frames = super()._frames(taken, entries, session)
        sent = {one.number for frame in frames for one in frame.items}
        unsent = [number for number, _ in taken if number not in sent]
        if unsent:
            self._node.submit_detached(LoseDeliveries(self._name, self._member, unsent))
        marked, self._redelivered = self._redelivered, set()
        return [_with_marks(frame, marked) for frame in frames] if marked else frames


def _with_marks(frame: f.Deliveries, marked: set[int]) -> f.Deliveries:
    numbers = tuple(one.number for one in frame.items if one.number in marked)
    return msgspec.structs.replace(frame, redelivered=numbers)
