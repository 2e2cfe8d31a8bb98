"""`Envelopes`: what goes to a node that need not be a neighbour, from link to link and in order.

A letter to a node that nobody knows a way to waits here until somebody does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fieldfare.protocol import wire
from fieldfare.protocol.journal import Row, StoredRows
from fieldfare.protocol.messages import Envelope

if TYPE_CHECKING:
    from fieldfare.node.durable_broker import DurableBroker


class Envelopes:
    """The ways to other nodes, and what waits for one."""

    def __init__(self, broker: DurableBroker) -> None:
        """No way is known."""
        self._broker = broker
        self._behind: dict[str, set[str]] = {}
        """by neighbour: the nodes that are reached through it"""
        self._parked: dict[int, Envelope] = {}
        self._count = 0

    def post(self, to: str, content: bytes) -> None:
        """Write to a node."""
        self.forward(Envelope(to, self._broker.broker.name, content))

    def forward(self, parcel: Envelope, via: str = "") -> None:
        """Send a letter on its way; if there is none, it waits for one.

        It never goes back to the neighbour that it came from: two that each think the way leads through the other, for
        a moment or since somebody lies, would send it to each other for ever.
        """
        links = self._broker.links.keys() - {via}
        way = next((one for one, nodes in self._behind.items() if parcel.to in nodes and one in links), None)
        if parcel.to in links:
            way = parcel.to
        if way is not None:
            self._broker.say(way, parcel)
            return
        self._count += 1
        self._parked[self._count] = parcel
        self._broker.keep(Row("parked", (self._count,), [parcel.to, parcel.origin, parcel.content]))

    def knows(self, node: str) -> bool:
        """Is a way to a node known?"""
        return node in self._broker.links or any(node in nodes for nodes in self._behind.values())

    def reach(self, neighbour: str, nodes: Iterable[str]) -> None:
        """A neighbour says whom it reaches."""
        known = set(nodes) | {neighbour}
        if self._behind.get(neighbour) != known:
            self._behind[neighbour] = known
            self._broker.keep(Row("reach", (neighbour,), sorted(known)))
        parked, self._parked = self._parked, {}
        for number, parcel in parked.items():
            self._broker.keep(Row("parked", (number,)))
            self.forward(parcel)

    def forget(self, neighbour: str, outbox: Iterable[bytes | int]) -> None:
        """A neighbour is none any more. Letters that were on their way through it have to find another one."""
        if self._behind.pop(neighbour, None) is not None:
            self._broker.keep(Row("reach", (neighbour,)))
        for what in outbox:
            message = wire.decode(what) if isinstance(what, bytes) else None
            if isinstance(message, Envelope):
                self.forward(message)

    def restore(self, stored: StoredRows) -> None:
        """Take up what was stored."""
        for (neighbour,), nodes in stored.get("reach", {}).items():
            self._behind[str(neighbour)] = set(nodes)
        for (number,), (to, origin, content) in sorted(stored.get("parked", {}).items()):
            self._parked[int(number)] = Envelope(to, origin, content)
            self._count = int(number)
