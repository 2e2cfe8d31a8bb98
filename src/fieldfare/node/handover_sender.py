"""`HandoverSender`: sends sessions to other nodes, in parts, because the log is on disk and may be long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.handover import carried_of
from fieldfare.node.node import Node
from fieldfare.node.replicas import Sent
from fieldfare.node.state import Pending, Step
from fieldfare.protocol.journal import JournalEntry

CHUNK: Final = 500
"""deliveries at a time, at most"""
CHUNK_BYTES: Final = 256 << 10


class HandoverSender:
    """Whoever watches a node for sessions that are ready to go."""

    def __init__(self, node: Node) -> None:
        """Begin to watch, before the node starts: some may have been on their way when it ended."""
        self._node = node
        self._busy: set[str | tuple[str, str]] = set()
        node.watchers.add(self._watch)

    def _watch(self, _: Step) -> None:
        for name, departure in self._node.broker.moving.departures.items():
            if departure.ready and name not in self._busy:
                self._busy.add(name)
                self._node.beside(self._carry(name))
        for pair in self._node.broker.keeping.due():
            if pair not in self._busy:
                self._busy.add(pair)
                self._node.beside(self._copy(*pair))

    async def _copy(self, name: str, keeper: str) -> None:
        """Send a keeper what waits for a session."""
        node, keeping = self._node, self._node.broker.keeping
        try:
            while (name, keeper) in keeping.due():
                ticket, waiting = keeping.waiting(name, keeper, CHUNK)
                entries = await node.entries([pending.position for _, pending in waiting])
                some = _first(waiting, entries)
                upto = some[-1][0] if len(waiting) == CHUNK or len(some) < len(waiting) else None
                sent = Sent(name, keeper, ticket, carried_of(some, entries), upto)
                await node.submit(partial(_send, sent))
        finally:
            self._busy.discard((name, keeper))

    async def _carry(self, name: str) -> None:
        node = self._node
        try:
            await node.submit(lambda broker, now: broker.moving.freeze(name, now))
            gone = False
            while not gone:
                waiting = node.broker.moving.waiting(name, CHUNK)
                entries = await node.entries([pending.position for _, pending in waiting])
                gone = await node.submit(partial(_carry, name, _first(waiting, entries), entries))
        finally:
            self._busy.discard(name)


def _send(sent: Sent, broker: DurableBroker, _: float) -> None:
    broker.keeping.send(sent)


def _carry(
    name: str,
    waiting: Sequence[tuple[int, Pending]],
    entries: Mapping[int, JournalEntry],
    broker: DurableBroker,
    now: float,
) -> bool:
    return broker.moving.carry(name, waiting, entries, now)


def _first(
    waiting: Sequence[tuple[int, Pending]], entries: Mapping[int, JournalEntry]
) -> Sequence[tuple[int, Pending]]:
    """As many as make a message of a good size, one at least."""
    size = 0
    for count, (_, pending) in enumerate(waiting):
        size += len(entries[pending.position].event) if pending.position in entries else 0
        if size > CHUNK_BYTES and count:
            return waiting[:count]
    return waiting
