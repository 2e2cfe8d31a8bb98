"""Objects: named bytes below a folder, or below a URL such as `s3://bucket/prefix`; needs `fieldfare[spark]`.

An object appears whole or not at all, and `create` lets one of several writers win, on a disk and in a bucket alike
(there by a conditional put, `If-None-Match`). So no place made of objects needs renames, links or locks.

Credentials and the address of the server come from the variables of the AWS tools: `AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`, and `AWS_ALLOW_HTTP` for a server without TLS.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import obstore
from obstore.store import LocalStore, from_url

_CHUNK: Final = 1 << 20
_PATIENCE: Final[Any] = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}


class Object(NamedTuple):
    """An object in a listing."""

    name: str
    size: int
    at: datetime
    """the time of its last change, by the clock of the storage"""


def is_url(place: str | Path) -> bool:
    """Tell whether a place is a URL of an object store, and not a folder.

    >>> is_url("s3://bucket/lake"), is_url("/data/lake")
    (True, False)
    """
    return "://" in str(place)


def absolute(place: str | Path) -> str:
    """Return a place as a text, whatever the working directory is."""
    return str(place).rstrip("/") if is_url(place) else str(Path(place).absolute())


def below(place: str | Path, name: str) -> str:
    """Return the place of a name below another place.

    >>> below("s3://bucket/lake", "events"), below("/data", "events")
    ('s3://bucket/lake/events', '/data/events')
    """
    return f"{absolute(place)}/{name}"


class Objects:
    """The objects below a place. A missing folder is like an empty one, and is made at the first write."""

    def __init__(self, place: str | Path) -> None:
        self.place = absolute(place)
        self.folder = None if is_url(place) else Path(self.place)
        """the folder, if the objects are files of this machine"""

    def read(self, name: str) -> bytes:
        """Return the bytes of an object; FileNotFoundError for a missing object."""
        if self.folder is not None:
            return (self.folder / name).read_bytes()
        return bytes(obstore.get(self._store(), name).bytes())

    def create(self, name: str, content: bytes) -> bool:
        """Create an object; False if the object exists already: of several writers, a single writer gets True."""
        try:
            obstore.put(self._store(), name, content, mode="create", use_multipart=False)
        except obstore.exceptions.AlreadyExistsError:
            return False
        return True

    def put(self, name: str, content: bytes | Path) -> None:
        """Write an object from bytes or from a file; an existing object is replaced."""
        obstore.put(self._store(), name, content)

    def put_new(self, name: str, file: Path) -> bool:
        """Write an object from a file, unless an object of the same name and size exists; False if so."""
        if (there := self.find(name)) is not None and there.size == file.stat().st_size:
            return False
        self.put(name, file)
        return True

    @contextmanager
    def writing(self, name: str) -> Iterator[Writer]:
        """Open an object for writing; the object appears at the end, and not at all after an exception."""
        writer = Writer(obstore.open_writer(self._store(), name))
        yield writer
        writer.finish()

    def find(self, name: str) -> Object | None:
        """Return an object without the bytes; None for a missing object."""
        try:
            return _object(obstore.head(self._store(), name))
        except FileNotFoundError:
            return None

    def listed(self, prefix: str = "", *, after: str | None = None) -> list[Object]:
        """Return the objects below a folder, sorted by name; if `after` is given, only names behind `after`."""
        if self.folder is not None and not (self.folder / prefix).is_dir():
            return []
        found = obstore.list(self._store(), prefix or None, offset=after)
        return sorted(_object(one) for some in found for one in some)

    def here(self, prefix: str = "") -> tuple[list[Object], list[str]]:
        """Return the objects directly in a folder, and the names of folders there, both in order."""
        if self.folder is not None and not (self.folder / prefix).is_dir():
            return [], []
        found = obstore.list_with_delimiter(self._store(), prefix or None)
        return sorted(_object(one) for one in found["objects"]), sorted(found["common_prefixes"])

    def delete(self, *names: str) -> None:
        """Delete objects; missing objects are no error."""
        for name in names:
            try:
                obstore.delete(self._store(), name)
            except FileNotFoundError:
                continue

    def delete_folder(self, name: str) -> None:
        """Delete all objects below a folder."""
        if self.folder is not None:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        else:
            self.delete(*(one.name for one in self.listed(name)))

    def fetch(self, name: str, to: Path) -> None:
        """Copy an object to a file, piece by piece."""
        if self.folder is not None:
            shutil.copyfile(self.folder / name, to)
            return
        with to.open("wb") as file:
            for piece in obstore.get(self._store(), name).stream(min_chunk_size=_CHUNK):
                file.write(piece)

    def open(self, name: str) -> Any:
        """Open an object for reading at any offset, as Parquet needs; an object that is a file, by the path."""
        return str(self.folder / name) if self.folder is not None else Reader(obstore.open_reader(self._store(), name))

    def _store(self) -> Any:
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        return _opened(self.place, os.environ.get("AWS_ENDPOINT_URL"))


class Writer:
    """An object during writing, as a file of Python's; `close` does nothing yet, see `finish`."""

    closed = False

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.size = 0

    def write(self, content: bytes) -> int:
        """Append some bytes to the object, and return how many."""
        self._inner.write(content)
        self.size += len(content)
        return len(content)

    def tell(self) -> int:
        """Return the number of bytes so far."""
        return self.size

    def flush(self) -> None:
        """Do nothing: an object appears at once, at the end."""

    def close(self) -> None:
        """Do nothing: whoever writes a format closes its file, also after an exception."""

    def finish(self) -> None:
        """End the writing, after which readers find the object whole."""
        self._inner.close()


class Reader:
    """An object during reading, as a file of Python's."""

    closed = False

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def read(self, size: int = -1) -> bytes:
        """Return some bytes, or all to the end."""
        return bytes(self._inner.read(None if size < 0 else size))

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to an offset, from the start, the present one or the end, and return the new offset."""
        return int(self._inner.seek(offset, whence))

    def tell(self) -> int:
        """Return the offset of the next byte to be read."""
        return int(self._inner.tell())

    def seekable(self) -> bool:
        """Tell that any place can be read."""
        return True

    def readable(self) -> bool:
        """Tell that bytes can be read."""
        return True

    def close(self) -> None:
        """End the reading, as a format does when the last row was read."""
        self._inner.close()
        self.closed = True


@lru_cache(maxsize=64)
def _opened(place: str, server: str | None) -> Any:
    """Open a store once for a process and a server, with its connections."""
    return from_url(place, retry_config=_PATIENCE) if is_url(place) else LocalStore(place)


def _object(found: Any) -> Object:
    return Object(found["path"], found["size"], found["last_modified"])
