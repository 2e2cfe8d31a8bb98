"""Messages by which the brokers of a Pastry overlay find and keep places; see `routing.overlays.pastry`."""

from __future__ import annotations

from typing import TypeAlias

from fieldfare.protocol.messages import Overlay


class Join(Overlay, frozen=True):
    """A new node looks for a place; nodes pass the message on to the node nearest to the new node."""

    joiner: str
    row: int = 0
    """First row of the joiner's table that no node on the way has filled."""
    names: tuple[str, ...] = ()
    """Nodes that the joiner should know, collected on the way."""


class Welcome(Overlay, frozen=True):
    """The answer to `Join`, from the nearest node."""

    names: tuple[str, ...]


class Announce(Overlay, frozen=True):
    """The leaves of the sender, which has joined. The answer is `State`, if the receiver knows of other nodes."""

    leaves: tuple[str, ...]


class State(Overlay, frozen=True):
    """Nodes for the receiver to know."""

    names: tuple[str, ...]


class Repair(Overlay, frozen=True):
    """A node has failed, and the sender has only `leaves` left. The answer is `State`, with nodes as replacement."""

    gone: str
    leaves: tuple[str, ...]


class Gone(Overlay, frozen=True):
    """A node has left or failed. Sent by the leaving node, or by the host of the receiving node."""

    name: str


OverlayMessage: TypeAlias = Join | Welcome | Announce | State | Repair | Gone
