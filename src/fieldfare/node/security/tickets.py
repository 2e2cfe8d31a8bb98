"""Tickets: how a client follows its session to another node without showing its token there.

A node that lets a session go tells the client where to, with a ticket: a random text. To the other node it says, over
the links and with the session itself, only the digest of the ticket, who the client is, which roles its token has and
until when (`handover.Vouch`). So a ticket is worth one session at one node: whoever gets hold of it, as a node that
has called a session without a client being there, can use it nowhere else.

The first ticket must be used soon. With each use the client gets another one (`Welcome`), for the next time that it
comes; the one that it has used stays good until the next one is used, since an answer may get lost. All this is in
memory: after a restart, or when the token that stands behind it ends, the client goes to an address that it was given
by its user, with its token. Where a node takes another's word for who somebody is, it is for publishing, subscribing
and advertising only, which that node could do itself as a neighbour.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final, NamedTuple

from fieldfare.node.security.access_rules import Security
from fieldfare.node.security.errors import Unauthenticated
from fieldfare.node.security.principals import Principal, is_void, with_roles
from fieldfare.protocol.handover import ClientVoucher

LIFE: Final = 60.0
"""seconds in which a first ticket must be used"""


class Pass(NamedTuple):
    """What a node knows of the client of a session that came here."""

    vouch: ClientVoucher
    digests: tuple[bytes, ...]
    """of the tickets that are good: one that was used, and the next"""
    until: float
    """when these end"""


def digest_of(ticket: str) -> bytes:
    """What others may know of a ticket."""
    return hashlib.sha256(ticket.encode()).digest()


def new_ticket() -> str:
    """A ticket that nobody can guess."""
    return secrets.token_urlsafe(32)


def vouch_for(principal: Principal, session: str, handover: str, ticket: str) -> ClientVoucher:
    """What the next node is told of a client that follows its session in a handover."""
    return ClientVoucher(
        session, handover, digest_of(ticket), principal.name, principal.roles, principal.until, principal.token,
        principal.issued,
    )  # fmt: skip


def first_pass(vouch: ClientVoucher, now: float) -> Pass:
    """A client is on its way here, another node says."""
    return Pass(vouch, (vouch.digest,), now + LIFE)


def opens(known: Pass, ticket: str, now: float) -> bool:
    """Is a ticket good?"""
    digest = digest_of(ticket)
    return now < known.until and any(hmac.compare_digest(digest, one) for one in known.digests)


def principal_of(known: Pass, security: Security | None, now: float) -> Principal:
    """Who comes with a ticket, and what they may do; Unauthenticated if the token behind it does not count any more."""
    vouch = known.vouch
    principal = with_roles(vouch.owner, vouch.roles, security, vouch.until)
    limited = principal.permissions._replace(administer=False, join=False, interest=False)
    principal = principal._replace(permissions=limited, token=vouch.token, issued=vouch.issued)
    if vouch.until is not None and vouch.until <= now:
        raise Unauthenticated("the token behind the ticket has expired: come with a new one")
    if is_void(principal.credential, security):
        raise Unauthenticated("the token behind the ticket is void: get a new one")
    return principal


def renewed(known: Pass, used: str) -> tuple[Pass, str]:
    """After a ticket was used: the pass with another one, and that ticket."""
    ticket = new_ticket()
    until = known.vouch.until if known.vouch.until is not None else float("inf")
    return Pass(known.vouch, (digest_of(used), digest_of(ticket)), until), ticket
