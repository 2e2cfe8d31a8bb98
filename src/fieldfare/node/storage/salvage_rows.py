"""The rows of a damaged store, as far as they are whole and make sense together.

Rows are about sessions and neighbours, and some lean on others: a subscription on its session, an outbox on its
neighbour. A row whose support is gone goes as well, or the node could not start with it. Where it is not known what a
neighbour wants, it is taken to want everything: then it gets too much until it says all again, and never too little.
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
"""kinds of rows whose keys begin with a session, and that need it"""
_NEIGHBOUR: Final = ("told", "outbox", "reach")
"""the same for neighbours"""
_ELSEWHERE: Final = ("kept", "arrival")
"""rows without which a session looks as if it were at home here"""
_MADE_ANEW: Final = ("checkpoint", "life")
"""rows that can be made again from the rest"""


class Gone(msgspec.Struct, frozen=True):
    """A row that is not there any more."""

    kind: str
    """or `?`, if it cannot be read"""
    key: RowKey
    """empty if it cannot be read"""
    why: str
    rows: int = 1
    """how many; 0 if nobody knows"""


class Rows(NamedTuple):
    """What is in a store."""

    problem: str
    """why it cannot be used as it is; empty if it can"""
    kept: dict[tuple[str, RowKey], Any]
    gone: list[Gone]
    made: list[str]
    """kinds of rows that have to be made anew"""


def look(path: Path) -> Rows:
    """The rows in a store that nobody uses. The file is not touched."""
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
        if expected is None or len(rows) + len(more) <= expected:  # else some of them were deleted long ago
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
    """What is wrong with a store, or what is in it; found out on a copy, since to open it changes it."""
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
    """Whole rows, the digest, and rows that are not whole. Those of an earlier version have no checksums."""
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
    """Without what leans on rows that are gone."""
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
    """Write rows as a new store."""
    store = Store(path, sync="full")
    store.commit(Row(kind, key, value) for (kind, key), value in rows.items())
    store.close()
