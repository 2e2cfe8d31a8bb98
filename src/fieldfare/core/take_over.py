"""The take-over of a session: the replica at a holder becomes the session, after the failure of the session's node."""

from __future__ import annotations

import logging
from typing import Final

from fieldfare.core.replica_state import Replica
from fieldfare.core.session_parts import SessionParts
from fieldfare.core.state import Session

NUMBER_GAP: Final = 1_000_000
"""Numbers that a take-over skips: the session's node may have used some that the holder does not know."""
GRACE: Final = 60.0
"""Seconds after which an incomplete replica may become the session."""

logger = logging.getLogger("fieldfare.node")


def may_take_over(name: str, replica: Replica, now: float) -> bool:
    """Tell whether a replica may become the session: a complete one at once, another one only after `GRACE`.

    The session's node may be back soon, and may have deliveries that are not here. A node of version 2 never says that
    a replica is complete.
    """
    if replica.former is None:
        return True
    replica.wanted = now if replica.wanted is None else replica.wanted
    if now - replica.wanted < GRACE:
        return False
    logger.error("the session %s goes on here without %s, which may not have sent all that waited", name, replica.node)
    return True


def become_session(parts: SessionParts, name: str, replica: Replica, position: int) -> None:
    """Put a session in the place of a replica, with numbers behind all possible numbers of the session's node."""
    sessions = parts.sessions
    interim = sessions[name]
    base = max(replica.count, *replica.carried, 0) + NUMBER_GAP
    session = sessions[name] = Session(
        replica.identity,
        durable=True,
        connected=False,
        last_seen=interim.last_seen,
        sequence=replica.sequence,
        count=base,
        sent=base,
        acknowledged=base,
        dropped=interim.dropped,
        owner=replica.owner,
        oldest=base + 1,
        handover_mark=f"{replica.ticket}//{position}",
        moves=replica.moves + 1,
    )
    known = {event for _, event in replica.carried.values()}
    waiting = [replica.carried[number][0] for number in sorted(replica.carried)]
    waiting += [interim.pending[n] for n in sorted(interim.pending) if replica.event_ids.get(n) not in known]
    for pending in waiting:
        parts.deliveries.deliver_stored(name, pending)
    session.doubt = session.count
    sessions.store(name)
    parts.devices.taken_over(name, interim.last_seen)
