"""The name of a node: the rule for names, and the default name."""

from __future__ import annotations

import hashlib
import re
import socket
from pathlib import Path
from typing import Final

from fieldfare.node import machine
from fieldfare.node.config.settings import Config

NAME_FILE: Final = "name"
"""the file in a node's folder that keeps the node's name"""


def is_name(name: str) -> bool:
    """Tell whether a node can have a name: letters, digits, dots, dashes and underscores, 100 at most."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) is not None


def default_name(config: Config) -> str:
    """Return the name that the folder keeps, or else one of host name, port and machine; ValueError with port 0.

    The digits of the machine are in the name because clones of a machine have the same host name.
    """
    if config.port == 0:
        raise ValueError("with port 0, any free one, a node needs a name: no two may share one")
    folder = Path(config.data) if config.data else None
    if folder is not None and (folder / NAME_FILE).is_file():
        return (folder / NAME_FILE).read_text("utf-8").strip()
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname().partition(".")[0]).strip("-")
    name = f"{host[:80] or 'node'}-{config.port}"
    if folder is not None and (folder / "node.sqlite").exists():  # the folder of an early version, which used this name
        return name
    return f"{name}-{_machine()}"


def _machine() -> str:
    """Return six digits that tell this machine from its clones, until the next boot."""
    return hashlib.sha256(machine.boot().encode()).hexdigest()[:6]
