"""The second check of rights: when a client comes back to a session, and for each event that waited in the session.

A session outlives the token of its first connection. The owner may have other roles by now, and the roles may have
other permissions. Subscriptions and advertisements that are no longer permitted end, with a warning to the client, and
no others; of the waiting events only those are delivered that the owner may read now.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from fieldfare.core.core import Core
from fieldfare.core.standing_pattern import is_composite, primitive_events
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.filters.filter import Filter
from fieldfare.node.security.errors import AccessDenied
from fieldfare.node.security.permissions import may_advertise, may_subscribe
from fieldfare.node.security.principals import Principal
from fieldfare.protocol import messages as m

DEAD_LETTER: Final = "fieldfare.deadletter"
"""type of events about undeliverable events, which are inside"""
_LETTER: Final = DEAD_LETTER.encode()
_COMPOSITE: Final = b"constituents"

MayRead: TypeAlias = Callable[[Mapping[str, object]], bool]

logger = logging.getLogger("fieldfare.node")


def may_read(principal: Principal) -> MayRead | None:
    """Return the test of whether a principal may read a waiting event; None: any event."""
    permission = principal.permissions.subscribe
    if permission is True:
        return None
    if not isinstance(permission, Filter):
        return lambda _: False
    return lambda event: _readable(permission, event)


def is_letter(event: bytes) -> bool:
    """Tell whether an encoded event may have others inside, which need a check at each delivery."""
    return _LETTER in event or _COMPOSITE in event


def _readable(permission: Filter, event: Mapping[str, object]) -> bool:
    """Tell whether a permission admits an event; a composite event is admitted if all contributing events are."""
    if is_composite(event):
        inside = list(primitive_events(event))
        return "omitted" not in event and bool(inside) and all(_readable(permission, Event(one)) for one in inside)
    return permission.matches(event) and _matches_inside(permission, event)


def _matches_inside(permission: Filter, event: Mapping[str, object]) -> bool:
    """Tell whether a permission also admits the event inside a dead letter, at any depth."""
    while isinstance(event, Event) and event.type == DEAD_LETTER:
        data = event.tree.get("data")
        inside = data.get("event") if isinstance(data, Mapping) else None
        if inside is None:
            return True
        try:
            event = Event(inside)  # type: ignore[arg-type]
        except (EventError, TypeError, ValueError):
            return False
        if not permission.matches(event):
            return False
    return True


def recheck(core: Core, name: str, principal: Principal, now: float) -> list[str]:
    """End subscriptions and advertisements that the owner may no longer have; return a sentence about each."""
    client = core.broker.clients.all.get(name)
    if client is None:
        return []
    ended = []
    patterns = core.patterns.users.of_session(name)
    for id, filter in list(client.subscriptions.items()):
        asked = core.patterns.known[patterns[id]].recipe.whole.filters.values() if id in patterns else (filter,)
        problem = next((found for one in asked if (found := _problem(may_subscribe, principal, one))), "")
        if problem:
            core.presence.change_filters(m.Unsubscribe(id), name, now)
            ended.append(f"the subscription {id} has ended: {problem}")
    for id, filter in list(client.advertisements.items()):
        problem = _problem(may_advertise, principal, filter)
        if problem:
            core.presence.change_filters(m.Unadvertise(id), name, now)
            ended.append(f"the advertisement {id} has ended: {problem}")
    for one in ended:
        logger.warning("session %s: %s", name, one)
    return ended


def _problem(question: Callable[[Principal, Filter], None], principal: Principal, filter: Filter) -> str:
    try:
        question(principal, filter)
    except AccessDenied as error:
        return str(error)
    return ""
