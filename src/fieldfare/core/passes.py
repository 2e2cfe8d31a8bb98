"""`Pass`: a client that follows its session to this node, as other nodes describe it; see `node.security.tickets`.

A session has several passes if its workers or devices follow, each with a ticket of its own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from fieldfare.protocol.handover import ClientVoucher

LIFE: Final = 60.0
"""seconds in which a first ticket must be used"""
MOST_PASSES: Final = 1000
"""passes of a session; a former node of the session must not fill the memory of the next"""


class Pass(NamedTuple):
    """The facts about the client of a session that was handed over to this node."""

    vouch: ClientVoucher
    digests: tuple[bytes, ...]
    """digests of the valid tickets: the last used one, and the next"""
    until: float
    """end of these tickets"""


def first_pass(vouch: ClientVoucher, now: float) -> Pass:
    """Return the pass of a client that another node has announced; its ticket is valid for `LIFE` seconds."""
    return Pass(vouch, (vouch.digest,), now + LIFE)


def with_first(passes: tuple[Pass, ...], vouch: ClientVoucher, now: float) -> tuple[Pass, ...]:
    """Return the passes of a session with one more, and without those whose time is over."""
    return (*(one for one in passes if now < one.until), first_pass(vouch, now))[-MOST_PASSES:]
