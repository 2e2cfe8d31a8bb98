"""Servers that are measured, processes of ours on loopback; and how other processes of ours are talked to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

START_SECONDS: Final = 90.0


class Server(NamedTuple):
    """A server that runs: its port on loopback, its processes, and its memory when it had nothing to do."""

    port: int
    pids: tuple[int, ...]
    idle_mb: float


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody uses just now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def answers(port: int) -> bool:
    """Whether somebody listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(there: Callable[[], bool], otherwise: str) -> None:
    """Wait until something is there, but not for ever."""
    deadline = time.monotonic() + START_SECONDS
    while not there():
        if time.monotonic() > deadline:
            raise RuntimeError(otherwise)
        time.sleep(0.1)


@contextlib.contextmanager
def child(
    command: list[str], environment: Mapping[str, str], directory: Path, log: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A process group of ours, which ends with the context."""
    process = subprocess.Popen(  # noqa: S603  # our own command lines
        command,
        env=dict(environment),
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)


# Processes of ours


def answer(pipe: Connection) -> Any:
    """What a process of ours says; if it failed, it says how."""
    try:
        said = pipe.recv()
    except EOFError:
        raise RuntimeError("a client ended before its time; what it wrote stands above") from None
    if isinstance(said, Exception):
        raise said
    return said


async def asked(pipe: Connection) -> Any:
    """What the parent asks for next, while connections go on; None if it is gone."""
    loop = asyncio.get_running_loop()
    there = asyncio.Event()
    loop.add_reader(pipe.fileno(), there.set)
    await there.wait()
    loop.remove_reader(pipe.fileno())
    try:
        return pipe.recv()
    except EOFError:
        return None
