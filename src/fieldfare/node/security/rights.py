"""What somebody may still do: rights are asked again when a session is taken up, and of each event that waited for it.

A session outlives the token that it was made with. Whoever comes back to it may have other roles by now, and so may the
roles be others. What it subscribes to and advertises that is no longer permitted ends, loudly, and nothing else does;
of what waits for it, only what its owner may read now is delivered.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.filters.filter import Filter
from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.security.errors import AccessDenied
from fieldfare.node.security.permissions import may_advertise, may_subscribe
from fieldfare.node.security.principals import Principal
from fieldfare.protocol import messages as m

DEAD_LETTER: Final = "fieldfare.deadletter"
"""the type of events about others that could not be brought to a sink, which are inside"""
_LETTER: Final = DEAD_LETTER.encode()

MayRead: TypeAlias = Callable[[Mapping[str, object]], bool]

logger = logging.getLogger("fieldfare.node")


def may_read(principal: Principal) -> MayRead | None:
    """Whether somebody may have an event that they asked for earlier; None: they may have all."""
    permission = principal.permissions.subscribe
    if permission is True:
        return None
    if not isinstance(permission, Filter):
        return lambda _: False
    return lambda event: permission.matches(event) and _matches_inside(permission, event)


def is_letter(event: bytes) -> bool:
    """Whether an event, as it is written, may be a dead letter: those are looked into whenever they are delivered."""
    return _LETTER in event


def _matches_inside(permission: Filter, event: Mapping[str, object]) -> bool:
    """Whether a permission is also for the event in a dead letter: a letter must not show what nobody may read."""
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


def recheck(broker: DurableBroker, name: str, principal: Principal, now: float) -> list[str]:
    """End what a session subscribes to or advertises and its owner no longer may; says what, and why."""
    client = broker.broker.clients.all.get(name)
    if client is None:
        return []
    ended = []
    for id, filter in list(client.subscriptions.items()):
        problem = _problem(may_subscribe, principal, filter)
        if problem:
            broker.sessions.change_filters(m.Unsubscribe(id), name, now)
            ended.append(f"the subscription {id} has ended: {problem}")
    for id, filter in list(client.advertisements.items()):
        problem = _problem(may_advertise, principal, filter)
        if problem:
            broker.sessions.change_filters(m.Unadvertise(id), name, now)
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


def withhold(broker: DurableBroker, name: str, numbers: list[int]) -> None:
    """Let a session never have some of what waits for it, since its owner may not read it any more."""
    if name in broker.sessions:
        broker.deliveries.withhold(name, numbers)
        logger.warning("session %s: %d events that waited for it are not for its owner any more", name, len(numbers))
