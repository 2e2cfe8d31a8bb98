"""Dropped deliveries: how many a session has lost, and whether its client knows.

A client hears the count of all dropped deliveries with the next frame. The client confirms the count by acknowledging a
delivery of that frame or a later one; until then each new connection is told again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from fieldfare.core.state import Session
from fieldfare.protocol.journal import Row, StoredRows

WARNED = "warned"
"""Kind of the rows with the confirmed counts."""


class Losing(Protocol):
    """A session, or a device of one."""

    dropped: int
    warned: int
    warning: tuple[int, int]
    sent: int


def warn(session: Losing, number: int) -> None:
    """Note that the frame with a delivery also carries the present count of dropped deliveries."""
    if session.dropped > max(session.warned, session.warning[0]):
        session.warning = session.dropped, number


def confirm(session: Losing, number: int) -> bool:
    """Note an acknowledgement; tell whether it confirms a higher count than was known before."""
    dropped, with_number = session.warning
    if dropped <= session.warned or number < with_number:
        return False
    session.warned = dropped
    return True


def row(name: str, session: Session) -> Row:
    """Return the row with the confirmed count of a session."""
    return Row(WARNED, (name,), session.warned or None)


def restore(sessions: Mapping[str, Session], stored: StoredRows) -> None:
    """Take the confirmed counts from stored rows."""
    for (name,), count in stored.get(WARNED, {}).items():
        if name in sessions:
            sessions[str(name)].warned = count


def reason(count: int, node: str) -> str:
    """Return a sentence about dropped events, for logs and users."""
    return f"{count} events were dropped at {node}: more waited than it keeps, or its log has them no more"
