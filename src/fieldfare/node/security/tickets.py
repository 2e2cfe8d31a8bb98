"""Tickets let a client follow its session to another node without showing its token there.

The node that hands a session over sends the client an address and a ticket: a random text. The other node gets, over
the links and with the session itself, only the digest of the ticket, the name of the client, the roles of its token and
their end (`handover.Vouch`). So a ticket opens one session at one node: a node that has called a session without its
client can use the ticket nowhere else.

The first ticket must be used soon. With each use the client gets the next ticket (`Welcome`), for its next connection;
a used ticket stays good until the first use of the next, since an answer may get lost. Tickets live in memory: after a
restart, or after the end of the token behind the ticket, the client goes to an address of its settings, with its token.
A node trusts the word of another node for publishing, subscribing and advertising only, which the other node could do
itself as a neighbour.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable

from fieldfare.core.passes import Pass
from fieldfare.node.security.access_rules import Security
from fieldfare.node.security.errors import Unauthenticated
from fieldfare.node.security.principals import Principal, is_void, with_roles
from fieldfare.protocol.handover import ClientVoucher


def digest_of(ticket: str) -> bytes:
    """Return the digest of a ticket, the part that other nodes may know."""
    return hashlib.sha256(ticket.encode()).digest()


def new_ticket() -> str:
    """Return a random ticket of 256 bits."""
    return secrets.token_urlsafe(32)


def vouch_for(principal: Principal, session: str, handover: str, ticket: str) -> ClientVoucher:
    """Return the facts for the next node about a client that follows its session in a handover."""
    return ClientVoucher(
        session, handover, digest_of(ticket), principal.name, principal.roles, principal.until, principal.token,
        principal.issued,
    )  # fmt: skip


def opened(passes: Iterable[Pass], ticket: str, now: float) -> Pass | None:
    """Return the pass for which a ticket is valid; comparisons take constant time."""
    digest = digest_of(ticket)
    valid = (one for one in passes if now < one.until)
    return next((known for known in valid if any(hmac.compare_digest(digest, one) for one in known.digests)), None)


def principal_of(known: Pass, security: Security | None, now: float) -> Principal:
    """Return the principal of a pass, without `administer`, `join` and `interest`; Unauthenticated after its token."""
    vouch = known.vouch
    principal = with_roles(vouch.owner, vouch.roles, security, vouch.until)
    limited = principal.permissions._replace(administer=False, join=False, interest=False)
    principal = principal._replace(permissions=limited, token=vouch.token, issued=vouch.issued)
    if vouch.until is not None and vouch.until <= now:
        raise Unauthenticated("the token behind the ticket has expired: connect with a new one")
    if is_void(principal.credential, security):
        raise Unauthenticated("the token behind the ticket is void: get a new one")
    return principal


def renewed(known: Pass, used: str) -> tuple[Pass, str]:
    """Return the pass after the use of a ticket, with the next ticket."""
    ticket = new_ticket()
    until = known.vouch.until if known.vouch.until is not None else float("inf")
    return Pass(known.vouch, (digest_of(used), digest_of(ticket)), until), ticket
