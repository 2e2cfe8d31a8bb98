"""The members of shared sessions at a running node: connections with turns at the events of a session.

`core.members` decides which member gets a delivery. A `Membership` is the view of one connection; `SharedSessions`
wakes and closes the connections of a session together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from fieldfare.core.core import Core
from fieldfare.core.keys import keys_of
from fieldfare.core.member_inputs import DetachMember, LoseDeliveries
from fieldfare.core.state import Pending
from fieldfare.protocol.frames import Delivery

if TYPE_CHECKING:
    from fieldfare.node.node import Closer, Node


class Connected(NamedTuple):
    """The connection of a member."""

    label: str
    close: Closer
    wake: Callable[[], None]


class SharedSessions:
    """The connections of all members at a node, by session and member."""

    def __init__(self, node: Node) -> None:
        """Serve a node, which wakes and closes each session by name."""
        self._node = node
        self._members: dict[str, dict[str, Connected]] = {}

    def join(self, name: str, member: str, connected: Connected) -> None:
        """Add the connection of an attached member; an earlier connection of the same label, or of no member, ends."""
        members = self._members.get(name)
        if members is None:
            members = self._members[name] = {}
            self._node.use_session(name, self._closer(name), lambda: self.wake(name))
        for other in list(members.values()):
            if connected.label and other.label == connected.label:
                other.close(f"the member {other.label} has another connection now")
        members[member] = connected

    def leave(self, name: str, member: str) -> None:
        """Remove the connection of a member."""
        members = self._members.get(name, {})
        members.pop(member, None)
        if not members and self._members.pop(name, None) is not None:
            self._node.closers.pop(name, None)
            self._node.wakers.pop(name, None)

    def wake(self, name: str) -> None:
        """Let the members of a session look for deliveries."""
        for one in self._members.get(name, {}).values():
            one.wake()

    def wake_members(self, name: str, members: set[str]) -> None:
        """Let some members of a session look for deliveries."""
        connected = self._members.get(name, {})
        for member in members & connected.keys():
            connected[member].wake()

    def _closer(self, name: str) -> Closer:
        def close(reason: str, *, again: bool = False, to: str = "", follow: bool = False) -> None:
            for one in list(self._members.get(name, {}).values()):
                one.close(reason, again=again, to=to, follow=follow)

        return close


class Membership:
    """The share of a connection in a session."""

    def __init__(self, node: Node, name: str, member: str) -> None:
        """Speak for an attached member."""
        self._node = node
        self._name, self._member = name, member

    def join(self, connected: Connected) -> None:
        """Let the connection be woken and closed with the other members."""
        self._node.shared.join(self._name, self._member, connected)

    def leave(self) -> None:
        """Leave the session to the other members."""
        self._node.shared.leave(self._name, self._member)

    def detach(self, core: Core, now: float) -> None:
        """Let the unacknowledged deliveries wait for the other members, as an input of the core."""
        DetachMember(self._name, self._member)(core, now)

    def grant(self, more: int) -> None:
        """Take so many deliveries more."""
        self._node.core.members.grant(self._name, self._member, more)

    async def take(self, limit: int) -> tuple[list[tuple[int, Pending]], frozenset[int]]:
        """Return the next deliveries, and the numbers of the deliveries known to a client, perhaps.

        Keys are read from the log, which may wait for the disk.
        """
        node, members = self._node, self._node.core.members
        without_key = members.without_key(self._name, node.clock())
        keys = await self._keys(without_key) if without_key else {}
        woken = members.give(self._name, node.clock(), keys)
        node.shared.wake_members(self._name, woken - {self._member})
        taken = members.take(self._name, self._member, limit)
        redelivered = frozenset(one.number for one in taken if one.redelivered)
        return [(one.number, one.pending) for one in taken], redelivered

    async def _keys(self, waiting: list[tuple[int, Pending]]) -> dict[int, Hashable]:
        sharing = self._node.core.members.of(self._name)
        if sharing is None or not sharing.key:
            return {}
        entries = await self._node.entries([pending.position for _, pending in waiting])
        return keys_of(waiting, entries, sharing.key)

    def lose_unsent(self, taken: list[tuple[int, Pending]], parts: list[list[Delivery]]) -> None:
        """Give up the deliveries without a place in a frame: the log, or the owner's right to read, is gone."""
        sent = {one.number for part in parts for one in part}
        unsent = [number for number, _ in taken if number not in sent]
        if unsent:
            self._node.submit_detached(LoseDeliveries(self._name, self._member, unsent))
