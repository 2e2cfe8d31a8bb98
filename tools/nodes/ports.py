"""Free ports of this machine, for nodes that tests and tools start."""

from __future__ import annotations

import contextlib
import socket


def free_port(count: int = 1) -> int:
    """Return the first of so many free ports in a row."""
    while True:
        with contextlib.ExitStack() as probes:
            first = probes.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            try:
                for other in range(port + 1, port + count):
                    probes.enter_context(socket.socket()).bind(("127.0.0.1", other))
            except (OSError, OverflowError):  # taken, or above the last port
                continue
            return port
