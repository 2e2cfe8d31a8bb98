"""The take-over of a session: the replica at a holder becomes the session, after the failure of the session's node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fieldfare.core.replica_state import Replica
from fieldfare.core.state import Session

if TYPE_CHECKING:
    from fieldfare.core.core import Core

NUMBER_GAP: Final = 1_000_000
"""Numbers that a take-over skips: the session's node may have used some that the holder does not know."""


def become_session(core: Core, name: str, replica: Replica) -> None:
    """Put a session in the place of a replica, with numbers behind all possible numbers of the session's node."""
    interim = core.sessions[name]
    base = max(replica.count, *replica.carried, 0) + NUMBER_GAP
    session = core.sessions[name] = Session(
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
        handover_mark=f"{replica.ticket}//{core.position}",
        moves=replica.moves + 1,
    )
    known = {event for _, event in replica.carried.values()}
    waiting = [replica.carried[number][0] for number in sorted(replica.carried)]
    waiting += [interim.pending[n] for n in sorted(interim.pending) if replica.event_ids.get(n) not in known]
    for pending in waiting:
        core.deliveries.deliver_stored(name, pending)
    session.doubt = session.count
    core.sessions.store(name)
    core.devices.taken_over(name, interim.last_seen)
