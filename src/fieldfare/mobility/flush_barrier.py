"""`FlushBarriers`: has what I said arrived everywhere, and what came of it come back?

On an overlay without cycles, a `BarrierRequest` goes from neighbour to neighbour, behind all that was said before.
Where there is no further neighbour an `BarrierReply` comes back, and from each broker when it has the echoes of all
whom it asked. So when the last echo is back, all brokers have heard what was said before the survey, and all that they
said to that before the echo has come.
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
    """The surveys that wait for echoes at one broker."""

    def __init__(self, broker: Broker, patience: float) -> None:
        """None yet. One whose echo does not come, for a link went down, is forgotten after a while."""
        self._broker = broker
        self._patience = patience
        self._count = broker.life << 32
        self._asked: dict[tuple[str, int], _Asked] = {}

    def begin(self, cause: Cause, now: float) -> list[Send]:
        """Ask all; nothing, if there is nobody to ask."""
        self._count += 1
        return self._ask(BarrierRequest(self._broker.name, self._count), "", cause, now)

    def receive_request(self, message: BarrierRequest, sender: str, now: float) -> list[Send]:
        """A neighbour asks."""
        return self._ask(message, sender, None, now) or [Send(sender, BarrierReply(message.origin, message.number))]

    def receive_reply(self, message: BarrierReply, sender: str) -> tuple[list[Send], Cause | None]:
        """A neighbour answers; gives what to send, and the cause of a survey of our own when that is done."""
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
