"""Faults of real nodes and their links: a link is cut or swallows everything, a node is killed or stands still."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from tools.nodes.kills import Process
from tools.nodes.ports import free_port


class Wire:
    """A TCP relay between two nodes: it can be cut, and it can stand still without a word."""

    def __init__(self, to: int) -> None:
        self.to, self.port = to, free_port()
        self._flows = asyncio.Event()
        self._flows.set()
        self._cut = False
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", self.port)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._abort()
        self._flows.set()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError), contextlib.closing(writer):
            if self._cut:
                return
            back, there = await asyncio.open_connection("127.0.0.1", self.to)
            both = {writer, there}
            self._open |= both
            try:
                await asyncio.gather(self._copy(reader, there), self._copy(back, writer))
            finally:
                self._open -= both

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            while data := await reader.read(1 << 16):
                await self._flows.wait()
                writer.write(data)
                await writer.drain()

    def _abort(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def cut(self, seconds: float) -> None:
        """Break all connections, and let none come about for a while."""
        self._cut = True
        self._abort()
        await asyncio.sleep(seconds)
        self._cut = False

    async def swallow(self, seconds: float) -> None:
        """Let nothing through for a while, and nobody know; then what is on its way is gone, with the connections."""
        self._flows.clear()
        await asyncio.sleep(seconds)
        self._abort()
        self._flows.set()


class Trouble:
    """Faults at random, several at a time, but one at a time for each node and wire; counted by kind."""

    def __init__(self, chance: random.Random, nodes: list[Process], wires: list[Wire], clients: list[Any]) -> None:
        self.counts: Counter[str] = Counter()
        self.chance, self._nodes, self._wires, self._clients = chance, nodes, wires, clients
        self._busy: dict[int, asyncio.Task[None]] = {}

    def strike(self) -> None:
        """Let something happen, unless its victim is in trouble already."""
        kinds: list[tuple[str, list[Any], Callable[[Any], Coroutine[Any, Any, None]]]] = [
            ("node killed", self._nodes, self._kill),
            ("node stopped for a while", self._nodes, self._stop),
            ("link cut", self._wires, lambda wire: wire.cut(self.chance.uniform(0, 4))),
            ("link swallowed everything", self._wires, lambda wire: wire.swallow(self.chance.uniform(0.5, 6))),
            ("client broke off", [one for one in self._clients if hasattr(one, "drop")], lambda one: one.drop()),
            ("client moved", [one for one in self._clients if hasattr(one, "move")], self._move),
        ]
        kind, victims, fault = self.chance.choice(kinds)
        victim = self.chance.choice(victims)
        if id(victim) not in self._busy or self._busy[id(victim)].done():
            self.counts[kind] += 1
            self._busy[id(victim)] = asyncio.create_task(fault(victim))

    async def over(self) -> None:
        """Wait until all is well again."""
        await asyncio.gather(*self._busy.values())
        for node in self._nodes:
            await node.answers()

    async def _kill(self, node: Process) -> None:
        node.kill()
        await asyncio.sleep(self.chance.choice([0.0, 0.0, self.chance.uniform(0, 3)]))
        node.start()
        await node.answers()

    async def _stop(self, node: Process) -> None:
        stopped = node.running
        assert stopped is not None
        stopped.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(self.chance.choice([0.2, 1.0, self.chance.uniform(0, 8)]))
        finally:
            stopped.send_signal(signal.SIGCONT)

    async def _move(self, client: Any) -> None:
        await client.move(self.chance.choice(self._nodes).url)
