"""Sessions between nodes, as plain values: arrivals at the target and departures at the source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from fieldfare.core.handover_table import HandoverState
from fieldfare.core.state import Pending, RequestRefused, Session
from fieldfare.routing.deduplication import EventId

HandoverStatus: TypeAlias = Literal["here", "coming", "going", "unknown"]
"""Place of a session, seen from one node: usable here, on its way here, on its way to another node, or elsewhere."""

STATUS: Final[Mapping[HandoverState, HandoverStatus]] = {
    HandoverState.ELSEWHERE: "unknown",
    HandoverState.REPLICA: "unknown",
    HandoverState.REQUESTED: "coming",
    HandoverState.REPLICA_REQUESTED: "coming",
    HandoverState.ARRIVING: "coming",
    HandoverState.HERE: "here",
    HandoverState.DEPARTING: "here",
    HandoverState.READY: "going",
    HandoverState.FROZEN: "going",
}
"""Place of a session in each state."""


class HandoverError(ValueError):
    """An input that the table of handovers does not know: an error of this node or of another node."""


class SessionMoving(RequestRefused):
    """The session is arriving or departing. The connection ends without an answer, and the client asks again."""


class TemporarilyRefused(RequestRefused):
    """The request may succeed later, or at another node."""


class SharedElsewhere(TemporarilyRefused):
    """The members of the session are at another node, where a further member may attach."""

    def __init__(self, reason: str, node: str) -> None:
        super().__init__(reason)
        self.node = node


class Arrival(msgspec.Struct):
    """A session on the way to the present node."""

    ticket: str
    source: str
    owner: str | None
    since: int = 0
    """Position of the log up to which no event is for the session."""
    session: Session | None = None
    """The part of the session that the source has sent; None before its description is here."""
    event_ids: dict[int, EventId] = {}
    """Events that arrived here meanwhile, by their number in the interim session."""
    next_request: tuple[str, str, str | None] | None = None
    """Ticket, node and owner of a request from a third node, to be answered when the session is here."""
    holder: str = ""
    """Replica holder that was asked, too, and from which the session comes if the source stays silent."""
    asked: int = 0
    """How many nodes have referred to another node, since the last maintenance."""
    after_arrival: list[tuple[Pending, EventId]] = []
    """Recovery only: events that the log names for the arrived session, although no row says that it had arrived."""

    @property
    def interim_mark(self) -> str:
        """The mark of events during the handover; the position excludes an earlier attempt without rows."""
        return f"{self.ticket}/{self.since}"

    def final_mark(self, position: int) -> str:
        """Return the mark of the session after arrival at a position."""
        return f"{self.ticket}//{position}"


class Departure(msgspec.Struct):
    """A session on the way to another node."""

    ticket: str
    target: str
    since: int
    """Position of the log up to which no event was noted for the handover."""
    ready: bool = False
    """Whether the target has subscribed to all filters: from then on the session must go."""
    frozen: bool = False
    """Whether the session's filters are removed here, so that it gets nothing more."""
    sent: int = 0
    """Number of the last delivery that was sent to the target."""
    last_events: dict[tuple[str, str], int] = {}
    """By publisher and identity: the last event that the session got since the handover began."""
