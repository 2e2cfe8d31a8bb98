"""Deliveries that a session lost: how many were dropped, and whether its client was told.

A client hears the count of all that were dropped so far, with what is sent next. It has heard it when it acknowledges
something that was sent with it or later; until then it is told again on each new connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldfare.node.state import Session
from fieldfare.protocol.journal import Row, StoredRows

if TYPE_CHECKING:
    from fieldfare.node.durable_broker import DurableBroker

WARNED = "warned"
"""the kind of rows that say of how many a client was told"""


def said(session: Session, number: int) -> None:
    """Note that a client is being told of all that was dropped, together with a delivery."""
    if session.dropped > max(session.warned, session.warning[0]):
        session.warning = session.dropped, number


def acknowledged(session: Session, number: int) -> bool:
    """Note that a client is done with all up to a number; whether it was told of more than was known."""
    dropped, with_number = session.warning
    if dropped <= session.warned or number < with_number:
        return False
    session.warned = dropped
    return True


def row(name: str, session: Session) -> Row:
    """Of how many the client of a session was told."""
    return Row(WARNED, (name,), session.warned or None)


def restore(broker: DurableBroker, stored: StoredRows) -> None:
    """Take up what was stored."""
    for (name,), count in stored.get(WARNED, {}).items():
        if name in broker.sessions:
            broker.sessions[str(name)].warned = count


def reason(count: int, node: str) -> str:
    """What a person is told."""
    return f"{count} events were dropped at {node}: more waited than it keeps, or its log has them no more"
