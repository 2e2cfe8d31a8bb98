"""`fieldfare` without its start: commands forked from one process that has imported everything.

A command costs half a second of CPU time only to begin, and a node more than two; documentation has about 120 commands
and 25 nodes, and help texts have 50 examples. `Commands` is a process that has loaded the packages and the compiled kernels once. Its folder holds a
program `fieldfare`, to be put first in PATH: it hands its arguments, directory, environment, input and output to that
process, which forks. The fork does all else that the real program does. Some tests in `tests/cli` start the real one: those of
streams, exit codes and signals, and of what a start prints.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final, NoReturn, Self

from tools.waiting import PATIENCE

CLIENT: Final = """#!{python} -IS
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
server.sendall(asked)
answers = server.makefile()
process = int(answers.readline())
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, _frame: os.kill(process, number))
sys.exit(int(answers.readline() or 128 + signal.SIGTERM))
"""
MODULES: Final = (
    "fieldfare.cli",
    "fieldfare.client",
    "fieldfare.cli.pages.network",
    "fieldfare.node.server",
    "fieldfare.routing.prefix.kernels",
    "fieldfare.simulation.scenario",
    "fieldfare_lab.bench.engines",
    "fieldfare_lab.cli",
    "fieldfare_lab.mobility.film",
    "fieldfare_lab.routing.experiments",
    "networkx",
    "pyarrow.parquet",
    "rich.console",
    "rich.progress",
    "rich.table",
)
"""what commands import, most of it late; those of the laboratory too"""


class Commands:
    """The process that forks; a context."""

    def __init__(self, folder: Path) -> None:
        """Make the program in a folder; its path must be short, as those of sockets are."""
        self.folder = folder
        self._address = str(folder / "socket")
        program = folder / "fieldfare"
        program.write_text(CLIENT.format(python=sys.executable, address=self._address), encoding="utf-8")
        program.chmod(0o755)

    def __enter__(self) -> Self:
        root = Path(__file__).parents[1]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.commands", self._address], cwd=root, stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def shell(command: str, directory: Path, programs: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in a shell; programs of the given folder come first, and `fieldfare` is the real one without."""
    path = os.pathsep.join([*([programs] if programs else []), str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        command,
        shell=True,
        cwd=directory,
        env={**os.environ, "PATH": path, "COLUMNS": "80"},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=PATIENCE,
    )


def serve(address: str) -> None:
    """Fork for each connection, until terminated."""
    _load()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(100)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _run(connection)
        connection.close()


def _reap(*_: object) -> None:
    """Wait for forks that have ended, so that their CPU time counts as that of the tests."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _load() -> None:
    """Import what commands import, and load the kernels."""
    from fieldfare.matching import backend  # noqa: PLC0415

    for module in MODULES:
        importlib.import_module(module)
    backend.choose("numba")
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page


def _run(connection: socket.socket) -> NoReturn:
    """Be the command: take over its arguments, directory, environment and files; then say how it ended."""
    head, files, _, _ = socket.recv_fds(connection, 4, 3)
    asked = b""
    while len(asked) < int.from_bytes(head, "big"):
        asked += connection.recv(1 << 20)
    arguments, directory, environment = json.loads(asked)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.setpgid(0, 0)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["fieldfare", *arguments]
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", buffering=1, closefd=False)  # noqa: SIM115
    connection.sendall(f"{os.getpid()}\n".encode())
    threading.Thread(target=_watch, args=(connection,), daemon=True).start()
    from fieldfare.cli import main  # noqa: PLC0415

    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:  # noqa: BLE001
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(f"{code}\n".encode())
    os._exit(code)


def _watch(connection: socket.socket) -> None:
    """End with the program: one that is killed cannot say so."""
    if not connection.recv(1):
        os._exit(1)


if __name__ == "__main__":
    serve(sys.argv[1])
