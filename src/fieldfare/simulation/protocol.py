"""The protocol of simulated machines: messages in, messages out. Brokers follow the protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fieldfare.protocol.messages import Message, Send


class Machine(Protocol):
    """A state machine without I/O, clock or chance."""

    def receive(self, message: Message, sender: str, now: float) -> Sequence[Send]:
        """Process a message of a neighbour or client; return the messages to send."""

    def tick(self, now: float) -> Sequence[Send]:
        """Do the work due at a time; return the messages to send."""

    @property
    def wakes(self) -> float | None:
        """The time of the next tick, or None."""

    def snapshot(self) -> bytes:
        """Return the whole state, for a later restart."""
