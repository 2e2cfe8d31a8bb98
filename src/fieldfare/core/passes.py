"""`Pass`: a client that follows its session to this node, as other nodes describe it; see `node.security.tickets`."""

from __future__ import annotations

from typing import Final, NamedTuple

from fieldfare.protocol.handover import ClientVoucher

LIFE: Final = 60.0
"""seconds in which a first ticket must be used"""


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
