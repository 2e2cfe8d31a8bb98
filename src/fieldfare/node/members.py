"""`SharedSessions`: the connections of members at a running node, by session.

`core.members` knows the same members without connections, and decides which member gets a delivery.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

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
            del self._node.closers[name], self._node.wakers[name]

    def close(self, name: str, label: str, reason: str) -> None:
        """End the connection of a member for good."""
        for one in list(self._members.get(name, {}).values()):
            if one.label == label:
                one.close(reason)

    def wake(self, name: str, members: Collection[str] | None = None) -> None:
        """Let members of a session look for deliveries: all, or the given ones."""
        for member, connected in self._members.get(name, {}).items():
            if members is None or member in members:
                connected.wake()

    def _closer(self, name: str) -> Closer:
        def close(reason: str, *, again: bool = False, to: str = "", follow: bool = False) -> None:
            for one in list(self._members.get(name, {}).values()):
                one.close(reason, again=again, to=to, follow=follow)

        return close
