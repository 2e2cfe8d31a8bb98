"""The log of a table on disk: commits name the files of the table. A file without a commit does not belong to it.

A commit is a small numbered file with the added and the removed files. The file appears in one step and only if no
other writer took the number, so a reader sees a batch or a compaction wholly or not at all, and two writers never undo
each other. At every 64th commit the state is written beside the commit, so that readers need not begin at the first.
All machines must see the folder, which needs hard links: a local disk, NFS, a mounted volume.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

LOG: Final = "_log"
_EVERY: Final = 64


class File(msgspec.Struct, frozen=True):
    """A Parquet file of a table, with its partition and size."""

    path: str
    """relative to the folder of the table"""
    kind: str
    day: str
    rows: int
    bytes: int


class Commit(msgspec.Struct, frozen=True, omit_defaults=True):
    """A change of a table: files that are added, removed or deleted, and the batch."""

    add: tuple[File, ...] = ()
    remove: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    """files that were removed before, and are now deleted"""
    schema: str | None = None
    writer: str | None = None
    batch: int = -1
    at: float = 0.0


class State(msgspec.Struct, frozen=True):
    """The files of a table after a number of commits."""

    version: int = 0
    files: dict[str, File] = {}
    removed: dict[str, float] = {}
    """removed files that a reader may still use, with the times of removal"""
    schema: str | None = None
    batches: dict[str, int] = {}
    """the last batch of each writer"""

    def after(self, commit: Commit) -> State:
        """Return the state after another commit."""
        files = {path: file for path, file in self.files.items() if path not in set(commit.remove)}
        removed = {path: at for path, at in self.removed.items() if path not in set(commit.forget)}
        return State(
            self.version + 1,
            files | {file.path: file for file in commit.add},
            removed | dict.fromkeys(commit.remove, commit.at),
            commit.schema or self.schema,
            self.batches if commit.writer is None else self.batches | {commit.writer: commit.batch},
        )


def load(path: Path) -> State:
    """Read the present state of a table; an empty state if the folder has no table."""
    log = path / LOG
    states = sorted(log.glob("*.state"))
    state = msgspec.json.decode(states[-1].read_bytes(), type=State) if states else State()
    while (following := _numbered(log, state.version + 1)).exists():
        state = state.after(msgspec.json.decode(following.read_bytes(), type=Commit))
    return state


def commit(path: Path, make: Callable[[State], Commit | None]) -> bool:
    """Write a commit made from the present state, again if another writer was quicker; False for no change."""
    log = path / LOG
    log.mkdir(parents=True, exist_ok=True)
    while True:
        state = load(path)
        change = make(state)
        if change is None:
            return False
        change = msgspec.structs.replace(change, at=time.time())
        if _create(_numbered(log, state.version + 1), msgspec.json.encode(change)):
            after = state.after(change)
            if after.version % _EVERY == 0:
                _create(log / f"{after.version:020}.state", msgspec.json.encode(after))
            return True


def _numbered(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def _create(path: Path, content: bytes) -> bool:
    """Create a file with all its content in one step; False if the file exists already."""
    part = path.with_name(f".{uuid.uuid4().hex}")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(part, path)
    except FileExistsError:
        return False
    finally:
        part.unlink()
    return True
