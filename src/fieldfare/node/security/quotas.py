"""How many sessions there may be, of all and of one owner."""

from __future__ import annotations

from operator import attrgetter

from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.node import Node
from fieldfare.node.state import RequestRefused


def check_new_session(node: Node, broker: DurableBroker, owner: str) -> None:
    """Refusal if there may not be one session more, or not one more of this owner.

    Without security everybody is the same owner, and so only the limit on all sessions counts. Those who come without
    a token where that is allowed are one owner, too: of theirs only the sessions that survive them are counted, else
    any of them could keep the others away.
    """
    limits = node.config.limits
    if len(broker.sessions) >= limits.sessions:
        raise RequestRefused(f"there are {limits.sessions} sessions already, the limit (limits.sessions)")
    if node.security is None or len(broker.sessions) < limits.owner_sessions:
        return
    if owner:
        count = sum(map(owner.__eq__, map(attrgetter("owner"), broker.sessions.values())))
    else:
        count = sum(one.durable and not one.owner for one in broker.sessions.values())
    if count >= limits.owner_sessions:
        who = repr(owner) if owner else "those without a token"
        raise RequestRefused(f"{who} has {count} sessions already, the limit for each owner (limits.owner_sessions)")
