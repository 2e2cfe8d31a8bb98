"""Attachment of a client to a session: the client's principal, and the way of the session to this node."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from fieldfare.core.claims import ClaimSession
from fieldfare.core.core import Core
from fieldfare.core.inputs import CancelArrival, TakeOver
from fieldfare.core.passes import Pass
from fieldfare.core.state import RequestRefused, Session
from fieldfare.core.step import Step
from fieldfare.node import security
from fieldfare.node.node import Node
from fieldfare.node.security import AccessDenied, Principal, rights, tickets
from fieldfare.node.security.quotas import check_new_session
from fieldfare.protocol import frames as f

TICKET_PATIENCE: Final = 5.0
"""Seconds to wait for the voucher of a client that comes with a ticket."""
REASSURE: Final = 2.0
"""Seconds between two `Waiting` frames to a client whose session is on its way."""


class Attached(NamedTuple):
    """An attached session, and the consequences for the client."""

    name: str
    session: Session
    void: int = 0
    """First delivery whose number means another event by now; 0 if there is none."""
    waited: int = 0
    """Number of the last delivery that has waited, perhaps since another token or role was here."""
    ended: tuple[str, ...] = ()
    """Sentences about filters that have ended, because the client may not have them any more."""
    member: str = ""
    """Name of the member in a shared session, and of the session under which the member publishes."""
    device: str = ""
    """Name of the device that the member is."""


async def ticket_holder(node: Node, hello: f.Hello) -> tuple[Principal, str]:
    """Return the principal of a client with a ticket, and the next ticket.

    A ticket is good for a single session. The voucher of the client may still be on the way.
    """
    name, handovers = hello.session, node.core.handovers
    passes, news = handovers.passes, asyncio.Event()

    def known_by() -> Pass | None:
        return tickets.opened(passes.get(name, ()), hello.ticket, node.clock())

    def watch(_: Step) -> None:
        news.set()

    node.watchers.add(watch)
    try:
        async with asyncio.timeout(TICKET_PATIENCE):
            while known_by() is None and handovers.status(name) == "coming":
                await news.wait()
                news.clear()
    except TimeoutError:
        pass
    finally:
        node.watchers.discard(watch)
    known = known_by()
    if known is None:
        raise security.Unauthenticated("this ticket is not good here: come with your token")
    principal = tickets.principal_of(known, node.security, node.clock())
    renewed, ticket = tickets.renewed(known, hello.ticket)
    passes[name] = tuple(renewed if one is known else one for one in passes[name])
    return principal, ticket


def no_clients(node: Node) -> str:
    """Return the reason for a refusal of all clients."""
    return f"{node.name} takes no clients, by its settings: use another node of the overlay"


async def attach(
    node: Node, hello: f.Hello, principal: Principal, send: Callable[[f.Frame], Awaitable[None]]
) -> Attached:
    """Attach a client to a session, and wait for a session from another node.

    If the other node stays silent, the replica holders are asked in turn. `RequestRefused` or AccessDenied says why
    there is no session for the client.
    """
    if not node.config.clients:
        raise RequestRefused(no_clients(node))
    fresh = node.fresh_name()
    name = hello.session or f"~{fresh}"
    if (hello.shared or hello.device) and not hello.session:
        raise RequestRefused("a shared session has a name, by which its members find it")
    if hello.shared and hello.device:
        raise RequestRefused("a member of a session is a worker or a device, not both")

    def job(core: Core, now: float) -> Attached | None:
        session = core.sessions.get(name)
        if session is None:
            check_new_session(node, core, principal.name)
        if session is not None and node.security is not None and session.owner != principal.name:
            raise AccessDenied(f"the session {name} belongs to somebody else")
        if not hello.session:
            owner = principal.name
            return Attached(name, core.presence.attach(name, fresh, now, durable=False, owner=owner))
        # Each attempt has a ticket of its own: another connection may cancel this one's request for the session, and an
        # answer to the cancelled request must not count for the next.
        return _claimed(hello, principal, core, node.fresh_name(), now, secure=node.security is not None)

    attached = await node.submit(job)
    candidates = deque((*hello.replicas, hello.at))
    while attached is None:
        if not await _wait(node, name, send) and hello.replicas:
            candidates.rotate(-1)
            await node.submit(TakeOver(name, candidates[-1], node.fresh_name()))
        attached = await node.submit(job)
    return attached


def _claimed(
    hello: f.Hello, principal: Principal, core: Core, fresh: str, now: float, *, secure: bool
) -> Attached | None:
    """Attach a durable session; None during a handover. Filters end if the owner has lost the permission."""
    member = f"~{fresh}" if hello.shared or hello.device else ""
    claim = ClaimSession(
        hello.session,
        fresh,
        hello.at,
        hello.identity,
        hello.moves,
        principal.name,
        hello.seen,
        hello.lives,
        member,
        hello.member,
        hello.key,
        hello.device,
        hello.oldest,
    )
    claimed = claim(core, now)
    if claimed is None:
        return None
    (session, void), waited = claimed, 0
    ended: tuple[str, ...] = ()
    if secure:
        waited = session.count
        ended = tuple(rights.recheck(core, hello.session, principal, now))
    if member:  # members of one session would get into each other's way with the numbers of their events
        core.presence.attach(member, fresh, now, durable=False, owner=principal.name)
    return Attached(hello.session, session, void, waited, ended, member, hello.device)


async def _wait(node: Node, name: str, send: Callable[[f.Frame], Awaitable[None]]) -> bool:
    """Wait until the status of a session changes; False if the patience of the settings ends before."""
    handovers, patience = node.core.handovers, node.config.sessions.patience_seconds
    before, changed = handovers.status(name), asyncio.Event()

    def watch(_: Step) -> None:
        if handovers.status(name) != before:
            changed.set()

    node.watchers.add(watch)
    until = asyncio.get_running_loop().time() + patience
    try:
        while not changed.is_set() and handovers.status(name) == before:
            if asyncio.get_running_loop().time() > until:
                return False
            await send(f.Waiting(handovers.source_of(name)))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(REASSURE, patience)):
                    await changed.wait()
        return True
    except BaseException:
        if node.ready:
            node.submit(CancelArrival(name))
        raise
    finally:
        node.watchers.discard(watch)
