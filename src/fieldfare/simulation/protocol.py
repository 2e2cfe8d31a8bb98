"""What can be simulated: a machine that takes messages and answers with messages. A broker is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fieldfare.protocol.messages import Message, Send


class Machine(Protocol):
    """A state without I/O, clock or chance."""

    def receive(self, message: Message, sender: str, now: float) -> Sequence[Send]:
        """Take a message of a neighbour or client, and say what is to be sent."""

    def tick(self, now: float) -> Sequence[Send]:
        """Do what is due by now."""

    @property
    def wakes(self) -> float | None:
        """When it wants its next tick, if at all."""

    def snapshot(self) -> bytes:
        """All that it knows, to be restored later."""
