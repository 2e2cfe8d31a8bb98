"""Processes of a benchmark: measured servers on loopback, and pipes to the processes of clients."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

START_SECONDS: Final = 600.0
"""longest time in which a server may start"""


class Server(NamedTuple):
    """A running server: port on loopback, processes, and memory before the first client."""

    port: int
    pids: tuple[int, ...]
    idle_mb: float


def program(name: str) -> str | None:
    """Return the path of an installed program: by PATH, beside Python, or where Debian keeps servers."""
    places = (os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent), "/usr/sbin")
    return shutil.which(name, path=os.pathsep.join(places))


def free_ports(count: int) -> list[int]:
    """Return free ports of loopback; another process may take a port before the caller binds it."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def answers(port: int) -> bool:
    """Tell whether a server listens on a port of loopback."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(there: Callable[[], bool], otherwise: str) -> None:
    """Wait until `there()` is true; after START_SECONDS, raise RuntimeError with the message `otherwise`."""
    deadline = time.monotonic() + START_SECONDS
    while not there():
        if time.monotonic() > deadline:
            raise RuntimeError(otherwise)
        time.sleep(0.1)


@contextlib.contextmanager
def child(
    command: list[str], environment: Mapping[str, str], directory: Path, log: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in a process group of its own; the whole group is killed at the end of the context."""
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
                process.wait(300)


# Pipes between the benchmark and its client processes


def answer(pipe: Connection) -> Any:
    """Receive the next answer of a client process; an exception of the process is raised."""
    try:
        reply = pipe.recv()
    except EOFError:
        raise RuntimeError("a client process ended early; its output stands above") from None
    if isinstance(reply, Exception):
        raise reply
    return reply


async def next_order(pipe: Connection) -> Any:
    """Receive the next order of the benchmark without blocking the event loop; None if the benchmark has ended."""
    loop = asyncio.get_running_loop()
    there = asyncio.Event()
    loop.add_reader(pipe.fileno(), there.set)
    await there.wait()
    loop.remove_reader(pipe.fileno())
    try:
        return pipe.recv()
    except EOFError:
        return None
