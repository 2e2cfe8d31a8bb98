"""Copies of objects on a machine, for mapped files: fetched once a machine, and checked by a digest.

A copy is named after the digest and appears by a rename, so any process maps whole copies only. A single process of a
machine fetches an object while others wait. Copies without use for a week are deleted.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fieldfare.objects import Objects

_WEEK: Final = 7 * 24 * 3600
_CHUNK: Final = 1 << 20


class CopyError(OSError):
    """An object with other content than expected."""


def local(place: Objects, name: str, digest: str) -> Path:
    """Return the path of an immutable object: of the object if the place is a folder, else of a copy.

    FileNotFoundError without the object.
    """
    if place.folder is not None:
        return place.folder / name
    folder = _folder()
    copy = folder / digest
    if not _used(copy):
        with _alone(folder / f"{digest}.lock"):
            if not _used(copy):
                _fetch(place, name, digest, copy)
                _delete_old(folder)
    return copy


def digest_of(path: Path) -> str:
    """Return the digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _folder() -> Path:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "fieldfare" / "subscriptions"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def _used(copy: Path) -> bool:
    """Note the use of a copy; False without a copy."""
    try:
        os.utime(copy)
    except FileNotFoundError:
        return False
    return True


def _fetch(place: Objects, name: str, digest: str, copy: Path) -> None:
    draft = copy.with_name(f".{uuid.uuid4().hex}")
    try:
        place.fetch(name, draft)
        if (found := digest_of(draft)) != digest:
            raise CopyError(f"{place.place}/{name} is damaged: its SHA-256 is {found}, not {digest}")
        draft.replace(copy)
    finally:
        draft.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Exclude other processes of the machine; the lock ends with the process."""
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _delete_old(folder: Path) -> None:
    for path in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _WEEK:
                path.unlink()
