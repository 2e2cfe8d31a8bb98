"""`NatsServer`: nats-server with JetStream on loopback, with a folder, to be killed and restarted."""

from __future__ import annotations

import contextlib
import socket
import subprocess
from pathlib import Path

from tools.servers import cache
from tools.waiting import wait_until


class NatsServer:
    """A server with streams in files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"nats://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and return when it answers."""
        program = cache.nats_server()
        assert program is not None
        command = [program, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", str(self.folder)]
        with (self.folder / "out.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until(self._answers)

    def kill(self) -> None:
        """End the server at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "out.log").read_text()[-2000:]
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False
