"""`HandoverSender`: sends the deliveries of departing sessions and of replicas, in parts read from the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fieldfare.core.inputs import FreezeSession, SendDeliveries, SendReplicaPart
from fieldfare.core.replica_state import ReplicaPart
from fieldfare.core.state import Pending
from fieldfare.core.step import Step
from fieldfare.core.stored_deliveries import stored_deliveries
from fieldfare.node.node import Node
from fieldfare.protocol.journal import JournalEntry

CHUNK: Final = 500
"""Largest number of deliveries in a message."""
CHUNK_BYTES: Final = 256 << 10
"""Size of the events from which on a message is not filled further."""


class HandoverSender:
    """Watches a node for departing sessions and for replica holders, and sends the waiting deliveries."""

    def __init__(self, node: Node) -> None:
        """Begin to watch; before the start of the node, since a stop may have interrupted a handover."""
        self._node = node
        self._busy: set[str | tuple[str, str]] = set()
        """Departing sessions, and pairs of session and holder, that a task is sending now."""
        node.watchers.add(self._watch)

    def _watch(self, _: Step) -> None:
        for name, departure in self._node.core.handovers.departures.items():
            if departure.ready and name not in self._busy:
                self._busy.add(name)
                self._node.spawn(self._send_session(name))
        for pair in self._node.core.replicas.due():
            if pair not in self._busy:
                self._busy.add(pair)
                self._node.spawn(self._send_replica(*pair))

    async def _send_replica(self, name: str, holder: str) -> None:
        node, replicas = self._node, self._node.core.replicas
        try:
            while (name, holder) in replicas.due():
                ticket, waiting = replicas.next_deliveries(name, holder, CHUNK)
                entries = await node.entries([pending.position for _, pending in waiting])
                some = _first_part(waiting, entries)
                upto = some[-1][0] if len(waiting) == CHUNK or len(some) < len(waiting) else None
                part = ReplicaPart(name, holder, ticket, stored_deliveries(some, entries), upto)
                await node.submit(SendReplicaPart(part))
        finally:
            self._busy.discard((name, holder))

    async def _send_session(self, name: str) -> None:
        node = self._node
        try:
            await node.submit(FreezeSession(name))
            gone = False
            while not gone:
                waiting = node.core.handovers.departures.next_deliveries(name, CHUNK)
                entries = await node.entries([pending.position for _, pending in waiting])
                gone = await node.submit(SendDeliveries(name, _first_part(waiting, entries), entries))
        finally:
            self._busy.discard(name)


def _first_part(
    waiting: Sequence[tuple[int, Pending]], entries: Mapping[int, JournalEntry]
) -> Sequence[tuple[int, Pending]]:
    """Return the first deliveries up to a good size of a message, never none."""
    size = 0
    for count, (_, pending) in enumerate(waiting):
        size += len(entries[pending.position].event) if pending.position in entries else 0
        if size > CHUNK_BYTES and count:
            return waiting[:count]
    return waiting
