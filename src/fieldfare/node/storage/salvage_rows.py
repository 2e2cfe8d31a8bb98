"""Salvage of a damaged store: the rows that are whole and consistent with each other.

Some rows depend on others: a subscription on its session, an outbox on its
neighbour. A row without its owner is dropped as well, or the node could not start. If filters of a neighbour are
lost, the neighbour gets all events until it announces its filters again: too many, and never too few.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import msgspec

from fieldfare.node.storage import private, sqlite_pages, wal
from fieldfare.node.storage.raw_format import ADVICE
from fieldfare.node.storage.rows import DIGEST, FAILURES, Store, Stored
from fieldfare.protocol.journal import Row, RowKey

_SESSION: Final = ("replayed", "subscriptions", "advertisements", "kept", "copy", "departure")
"""Kinds of rows whose keys begin with a session, and that need the session's row."""
_NEIGHBOUR: Final = ("told", "outbox", "reach")
"""The same for neighbours."""
_ELSEWHERE: Final = ("kept", "arrival")
"""Kinds of rows without which a replica or an arriving session looks like a session of this node."""
_MADE_ANEW: Final = ("checkpoint", "life")
"""Kinds of rows that can be derived from the others."""


class Gone(msgspec.Struct, frozen=True):
    """A lost row, or several of one kind."""

    kind: str
    """Kind of the row; `?` if unreadable."""
    key: RowKey
    """Key of the row; empty if unreadable."""
    why: str
    rows: int = 1
    """Number of rows; 0 if unknown."""


class Rows(NamedTuple):
    """The findings in a store."""

    problem: str
    """Reason why the store cannot be used as it is; empty if it can."""
    kept: dict[tuple[str, RowKey], Any]
    gone: list[Gone]
    made: list[str]
    """Kinds of rows that have to be derived anew."""


def look(path: Path) -> Rows:
    """Read the rows of a store without changing the file; no process may use it."""
    if not path.exists():
        return Rows(f"{path} is missing", {}, [Gone("?", (), "the file is missing", 0)], list(_MADE_ANEW))
    problem, rows = _opened(path)
    if not problem and rows:
        return Rows("", rows, [], [])
    if not problem:
        return Rows(f"{path} is empty", {}, [Gone("?", (), "the file is empty", 0)], list(_MADE_ANEW))
    log = wal.wal_path(path)
    image = wal.applied(path.read_bytes(), wal.read(log))
    read = sqlite_pages.read(image)
    rows, digest, bad = _sorted_out(read.rows)
    expected = msgspec.msgpack.decode(digest.value)[0] if digest is not None else None
    if read.orphans and (expected is None or len(rows) < expected):
        found, other, _ = _sorted_out(read.orphans)
        if expected is None and other is not None:
            expected = msgspec.msgpack.decode(other.value)[0]
        more = {place: value for place, value in found.items() if place not in rows}
        if expected is None or len(rows) + len(more) <= expected:  # else some of the orphans were deleted long ago
            rows |= more
    gone = [Gone(*_named(row), "its checksum is wrong") for row in bad]
    gone = [one for one in gone if one.kind != DIGEST and (one.kind, one.key) not in rows]
    vanished = max(0, (expected or 0) - len(rows) - len(gone))
    gone = [one for one in gone if one.kind not in _MADE_ANEW]
    if vanished:
        gone.append(Gone("?", (), "nothing is left of it", vanished))
    elif expected is None:
        gone.append(Gone("?", (), "nobody knows how many there were", 0))
    made = [kind for kind in _MADE_ANEW if (kind, ()) not in rows]
    return _sensible(rows, gone, made, problem)


def _opened(path: Path) -> tuple[str, dict[tuple[str, RowKey], Any]]:
    """Return the problem of a store, or its rows; a copy is opened, since opening changes the file."""
    with TemporaryDirectory(prefix="fieldfare-") as folder:
        copy = Path(folder) / path.name
        for file in (path, wal.wal_path(path)):
            if file.exists():
                private.create(Path(folder) / file.name, file.read_bytes())
        try:
            store = Store(copy)
            try:
                loaded = store.load()
            finally:
                store.close()
        except (*FAILURES, ValueError) as error:
            return str(error).split(f". {ADVICE}")[0].replace(folder, str(path.parent)), {}
    return "", {(kind, key): value for kind, rows in loaded.items() for key, value in rows.items()}


def _sorted_out(stored: Iterable[Stored]) -> tuple[dict[tuple[str, RowKey], Any], Stored | None, list[Stored]]:
    """Return the whole rows, the digest, and the damaged rows; rows of format 1 have no checksums."""
    rows: dict[tuple[str, RowKey], Any] = {}
    digest = None
    bad = []
    for row in stored:
        try:
            if not row.is_whole and (row.checksum is not None or row.kind is None):
                raise ValueError("its checksum is wrong")
            key, value = tuple(msgspec.msgpack.decode(row.key)), msgspec.msgpack.decode(row.value)
            if not isinstance(row.kind, str) or not row.kind.isidentifier():
                raise ValueError("no such kind")
            if row.kind == DIGEST:
                digest = row
            else:
                rows[row.kind, key] = value
        except (ValueError, TypeError):
            bad.append(row)
    return rows, digest, bad


def _named(row: Stored) -> tuple[str, RowKey]:
    kind = row.kind if isinstance(row.kind, str) and row.kind.isidentifier() else "?"
    try:
        key = msgspec.msgpack.decode(row.key)
    except (ValueError, TypeError):
        key = None
    return kind, tuple(key) if isinstance(key, list) else ()


def _sensible(rows: dict[tuple[str, RowKey], Any], gone: list[Gone], made: list[str], problem: str) -> Rows:
    """Return the rows without those whose owner is lost, and with `TRUE` for neighbours whose filters are lost."""
    lost = list(gone)
    away = {str(one.key[0]) for one in lost if one.kind in _ELSEWHERE and one.key}
    sessions = {str(key[0]) for kind, key in rows if kind == "session"} - away
    neighbours = {str(key[0]) for kind, key in rows if kind == "neighbour"}
    kept: dict[tuple[str, RowKey], Any] = {}
    for (kind, key), value in rows.items():
        about = str(key[0]) if key else ""
        arrived = kind == "arrival" and isinstance(value, list) and len(value) > 4 and value[4] is not None
        if (kind in (*_SESSION, "session") or arrived) and about not in sessions:
            gone.append(Gone(kind, key, f"the session {about} is gone"))
        elif kind in _NEIGHBOUR and about not in neighbours:
            gone.append(Gone(kind, key, f"the neighbour {about} is gone"))
        else:
            kept[kind, key] = value
    all_blind = any(one.kind == "?" or (one.kind == "told" and not one.key) for one in lost)
    blind = neighbours if all_blind else neighbours & {str(one.key[0]) for one in lost if one.kind == "told"}
    subjects = {"subscriptions", *(key[1] for kind, key in rows if kind == "told")}
    kept |= {("told", (neighbour, about, "TRUE")): 1 for neighbour in blind for about in subjects}
    return Rows(problem, kept, gone, made)


def write(path: Path, rows: dict[tuple[str, RowKey], Any]) -> None:
    """Create a store with the given rows."""
    store = Store(path, sync="full")
    store.commit(Row(kind, key, value) for (kind, key), value in rows.items())
    store.close()
