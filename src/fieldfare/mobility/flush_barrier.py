"""`FlushBarriers`: proof that earlier messages have arrived everywhere, and that their answers have come back.

On an overlay without cycles, a `BarrierRequest` travels from neighbour to neighbour, behind all earlier messages. From
the last broker of each way a `BarrierReply` comes back, and each broker replies after all replies to its own requests.
So after the last reply all brokers have received the messages before the request, and their answers from before the
reply have arrived.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from fieldfare.mobility.publisher_messages import BarrierReply, BarrierRequest
from fieldfare.protocol.messages import Send
from fieldfare.routing.broker import Broker

Cause: TypeAlias = tuple[str, int]
"""a client, and the number of its visit"""


class _Asked(NamedTuple):
    parent: str
    """who asked; nobody, if we did ourselves"""
    left: set[str]
    since: float
    cause: Cause | None


class FlushBarriers:
    """The open barriers of a single broker."""

    def __init__(self, broker: Broker, patience: float) -> None:
        """Make the state without barriers.

        A barrier without replies, after a broken link, is forgotten after `patience` seconds.
        """
        self._broker = broker
        self._patience = patience
        self._count = broker.life << 32
        self._asked: dict[tuple[str, int], _Asked] = {}

    def begin(self, cause: Cause, now: float) -> list[Send]:
        """Send a request to all neighbours; an empty result means that there are no neighbours."""
        self._count += 1
        return self._ask(BarrierRequest(self._broker.name, self._count), "", cause, now)

    def receive_request(self, message: BarrierRequest, sender: str, now: float) -> list[Send]:
        """Pass a neighbour's request on, or reply at once."""
        return self._ask(message, sender, None, now) or [Send(sender, BarrierReply(message.origin, message.number))]

    def receive_reply(self, message: BarrierReply, sender: str) -> tuple[list[Send], Cause | None]:
        """Note a reply; return the messages to send, and the cause of an own barrier that is complete."""
        key = message.origin, message.number
        asked = self._asked.get(key)
        if asked is None:
            return [], None
        asked.left.discard(sender)
        if asked.left:
            return [], None
        del self._asked[key]
        return ([Send(asked.parent, message)] if asked.parent else []), asked.cause

    def _ask(self, message: BarrierRequest, parent: str, cause: Cause | None, now: float) -> list[Send]:
        for key in [key for key, asked in self._asked.items() if now - asked.since > self._patience]:
            del self._asked[key]
        others = [other for other in self._broker.neighbours if other != parent]
        if others:
            self._asked[message.origin, message.number] = _Asked(parent, set(others), now, cause)
        return [Send(other, message) for other in others]
