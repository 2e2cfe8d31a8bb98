"""`Deadline`: a connection is aborted unless the deadline is stopped in time."""

from __future__ import annotations

import asyncio


class Deadline:
    """A timer that aborts a connection."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    @property
    def runs(self) -> bool:
        """Tell whether the connection will be aborted."""
        return self._timer is not None

    def start(self, transport: asyncio.Transport, seconds: float) -> None:
        """Abort the connection of a transport in so many seconds."""
        self.stop()
        self._timer = asyncio.get_running_loop().call_later(seconds, transport.abort)

    def stop(self) -> None:
        """Cancel the timer; nothing happens if there is none."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
