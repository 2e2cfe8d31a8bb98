"""`Server`: the web server of a node, which ends at once; that of uvicorn looks ten times a second whether it may."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import Final

import uvicorn

FAREWELL: Final = 2.0
"""Seconds for answers that are under way at the end."""


class Server(uvicorn.Server):
    """A uvicorn server that waits for conditions, and not for times."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    def end(self) -> None:
        """Begin to end; `serve` returns soon."""
        self.should_exit = True
        self._ending.set()

    async def main_loop(self) -> None:
        """Renew the date of answers every second, until the end."""
        counter = 0
        while not await self.on_tick(counter):
            counter = (counter + 1) % 10
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):  # a signal sets `should_exit` only
                    await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close idle connections, and wait for the others, but no longer than `FAREWELL`."""
        for server in self.servers:
            server.close()
        for one in sockets or ():
            one.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL):
                while state.connections or state.tasks:
                    await asyncio.sleep(0.002)
        for task in state.tasks:
            task.cancel()
