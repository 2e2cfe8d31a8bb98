"""`Socket`: the part of a WebSocket that connections and links need, accepted here or dialled."""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from typing import Any, Protocol


class Socket(Protocol):
    """A WebSocket as connections and links use it, whichever library carries it."""

    async def receive(self) -> bytes | str | None:
        """Return the next message; None when the socket is closed."""

    async def send(self, data: bytes | str) -> None:
        """Send a message; wait while the other side reads slowly."""

    async def close(self, code: int, reason: str) -> None:
        """Close the socket with a code and a reason of RFC 6455."""


class Listener(Protocol):
    """The owner of an accepted socket, called by the event loop itself: a task for each message would cost more."""

    def receive(self, messages: deque[bytes | str]) -> Coroutine[Any, Any, None] | None:
        """Take messages from the left and handle them; a returned coroutine must end before more are handled."""

    def resume(self) -> None:
        """Go on to write after the other side has read."""

    def lost(self) -> None:
        """Note the end: no more messages will come."""
