"""`Socket`: the part of a WebSocket that connections need, whichever library serves the port."""

from __future__ import annotations

from typing import Protocol


class Socket(Protocol):
    """A WebSocket as connections and links use it, whichever library carries it."""

    async def receive(self) -> bytes | str | None:
        """Return the next message; None when the socket is closed."""

    async def send(self, data: bytes | str) -> None:
        """Send a message; wait while the other side reads slowly."""

    async def close(self, code: int, reason: str) -> None:
        """Close the socket with a code and a reason of RFC 6455."""
