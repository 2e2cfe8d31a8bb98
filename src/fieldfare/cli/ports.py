"""Checks that ports are free before a command starts nodes."""

from __future__ import annotations

import errno
import json
import socket
from collections.abc import Iterable
from typing import Final
from urllib.request import Request, urlopen

from fieldfare.cli.errors import InputError

HOST: Final = "127.0.0.1"


def need(ports: Iterable[int], advice: str) -> None:
    """Raise InputError unless all ports are free; the message names the node that uses a port."""
    for port in ports:
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a node does: a closed one is no hindrance
            try:
                one.bind((HOST, port))
            except OSError as error:
                reason = (
                    f"is in use{_by(port)}" if error.errno == errno.EADDRINUSE else f"will not do: {error.strerror}"
                )
                raise InputError("", f"port {port} {reason}. {advice}") from None


def _by(port: int) -> str:
    """Return the name and dashboard of the node on a port, or "" if another program is there."""
    request = Request(f"http://{HOST}:{port}/", headers={"Accept": "application/json"})
    try:
        with urlopen(request, timeout=2) as answer:  # noqa: S310 - of this machine
            about = json.loads(answer.read(10_000))
        return f" by the node {about['name']}: see http://{HOST}:{port}/dashboard" if "events" in about["links"] else ""
    except (OSError, ValueError, LookupError, TypeError):  # something else, or a node that answers nobody
        return ""
