"""Messages by which the brokers of a Pastry overlay find and keep their places; see `routing.overlays.pastry`."""

from __future__ import annotations

from typing import Final, TypeAlias

from fieldfare.protocol.messages import Overlay

VERSION: Final = 2
"""Version of the overlay messages; see `docs/reference/versions.md`."""


class Join(Overlay, frozen=True):
    """A new node looks for its place. It is passed on to the node that is nearest to it."""

    joiner: str
    row: int = 0
    """the first row of its table that nobody on the way has filled"""
    names: tuple[str, ...] = ()
    """what it should know, collected on the way"""


class Welcome(Overlay, frozen=True):
    """The answer to `Join`, from the nearest node."""

    names: tuple[str, ...]


class Announce(Overlay, frozen=True):
    """I am here, and these are my leaves. The answer is `State`, if there is anything to say."""

    leaves: tuple[str, ...]


class State(Overlay, frozen=True):
    """Nodes that you should know."""

    names: tuple[str, ...]


class Repair(Overlay, frozen=True):
    """A node is no more, and these are the leaves left to me. The answer is `State`, with nodes to take its places."""

    gone: str
    leaves: tuple[str, ...]


class Gone(Overlay, frozen=True):
    """A node is no more. Said by the node itself when it leaves, or by whoever runs this one when it has failed."""

    name: str


OverlayMessage: TypeAlias = Join | Welcome | Announce | State | Repair | Gone
