"""Files and folders that only their user may read or write, whatever the umask says.

A node's folder holds events, names of sessions and credentials of webhooks. A file gets its private mode when it is
created: if the mode were changed later, another user could open the file in between.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Final

FILE: Final = 0o600
FOLDER: Final = 0o700

logger = logging.getLogger("fieldfare.node")


def create(path: Path, data: bytes = b"") -> None:
    """Write a private file, or overwrite one."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), FILE)
    with os.fdopen(file, "wb") as stream:
        stream.write(data)


def make_folder(path: Path) -> None:
    """Create a private folder, unless it exists; folders above it get the usual mode."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(mode=FOLDER, exist_ok=True)


def tighten(folder: Path, *, is_ours: bool) -> None:
    """Make an existing folder private, with the files in it.

    A folder that is not the node's own (`/tmp`, a home) keeps its mode, and a warning says so.
    """
    if os.name == "nt":
        return  # files there have no modes
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.is_symlink():
            _take_away(path, FILE)
    if is_ours:
        _take_away(folder, FOLDER)
    elif _is_open(folder):
        logger.warning("others can look into %s, which has the node's files: give it a folder of its own", folder)


def _take_away(path: Path, mode: int) -> None:
    if _is_open(path):
        try:
            path.chmod(mode)
        except OSError as error:
            logger.warning("others can read %s, and that cannot be changed: %s", path, error.strerror)
        else:
            logger.warning("others could read %s: it is private now", path)


def _is_open(path: Path) -> bool:
    return bool(stat.S_IMODE(path.stat().st_mode) & 0o077)
