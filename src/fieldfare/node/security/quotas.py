"""The limits on the number of sessions, of all owners and of one owner."""

from __future__ import annotations

from operator import attrgetter

from fieldfare.core.core import Core
from fieldfare.core.state import RequestRefused
from fieldfare.node.node import Node


def check_new_session(node: Node, core: Core, owner: str) -> None:
    """Raise RequestRefused if the limit on all sessions, or on the sessions of the owner, is reached.

    Without security all clients are the same owner, so only the limit on all sessions counts. Anonymous clients are one
    owner, too: of theirs only the durable sessions count, or a single client could keep the others away.
    """
    limits = node.config.limits
    if len(core.sessions) >= limits.sessions:
        raise RequestRefused(f"there are {limits.sessions} sessions already, the limit (limits.sessions)")
    if node.security is None or len(core.sessions) < limits.owner_sessions:
        return
    if owner:
        count = sum(map(owner.__eq__, map(attrgetter("owner"), core.sessions.values())))
    else:
        count = sum(one.durable and not one.owner for one in core.sessions.values())
    if count >= limits.owner_sessions:
        who = repr(owner) if owner else "all clients without a token together"
        raise RequestRefused(f"{who}: {count} sessions already, the limit for each owner (limits.owner_sessions)")
