"""`Store`: the rows of a `Core` on disk, in one SQLite file.

Rows of a commit are written all or none, and when `commit` returns they survive the process being killed; with
`sync="full"` the machine losing power, too. A commit has a fixed cost, so many steps should share one.

A row has a checksum over kind, key and value. A further row, the *digest*, has the number of all others and the sum of
the checksums, and changes with every commit: so a vanished row is noticed, too, and an outdated row. Both are checked
when the file is opened, and so are the commits in SQLite's write-ahead log.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple
from zlib import crc32

import msgspec

from fieldfare.node.storage import private, wal
from fieldfare.node.storage.raw_format import advice
from fieldfare.protocol.journal import Row, RowKey

FORMAT: Final = 2
_COLUMNS: Final = "kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL,"
_PRIMARY: Final = "PRIMARY KEY (kind, key)) WITHOUT ROWID"
_TABLE: Final = f"CREATE TABLE rows ({_COLUMNS} checksum INTEGER NOT NULL, {_PRIMARY}"
_TABLE_1: Final = f"CREATE TABLE rows ({_COLUMNS} {_PRIMARY}"
"""Table of format 1, without checksums."""

DIGEST: Final = "digest"
"""Kind of the row that sums up all others."""
_SUM: Final = (1 << 64) - 1
_ENVIRONMENT: Final = (
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
)
"""SQLite errors that say nothing about the content of the file."""
FAILURES: Final = (sqlite3.Error, UnicodeDecodeError, MemoryError, OverflowError)
"""Exceptions of SQLite for a damaged file, also if its message quotes bytes that are no text any more."""


logger = logging.getLogger("fieldfare.node")


class StoreError(ValueError):
    """A file is no store, or the store of a later version."""


class StoreDamaged(StoreError):
    """The content of a file has changed since the last write."""

    def __init__(self, path: Path | str, problem: object) -> None:
        super().__init__(f"{path} is damaged: {problem}. {advice(Path(path).parent)}")


class Stored(NamedTuple):
    """A row of the file, whole or damaged."""

    kind: Any
    key: Any
    value: Any
    checksum: Any

    @property
    def is_whole(self) -> bool:
        """Tell whether the checksum of the row is right."""
        kind, key, value, checksum = self
        right = isinstance(kind, str) and isinstance(key, bytes) and isinstance(value, bytes)
        return right and bool(checksum_of(kind, key, value) == checksum)

    def __str__(self) -> str:
        """Return the kind and key, as far as they can be decoded."""
        try:
            key = msgspec.msgpack.decode(self.key)
        except (ValueError, TypeError):
            key = self.key
        return f"the row of kind {self.kind!r} with key {key!r}"


class Store:
    """Rows in a file.

    >>> store = Store(":memory:")
    >>> store.commit([Row("session", ("ana",), 3), Row("outbox", ("rome", 1), b"hello")])
    >>> store.commit([Row("outbox", ("rome", 1))])
    >>> store.load()
    {'session': {('ana',): 3}}
    """

    def __init__(self, path: Path | str, *, sync: Literal["normal", "full"] = "normal") -> None:
        """Open or create a store; a store of format 1 gets checksums."""
        self._path = path
        self._total = 0
        self._checksums: dict[tuple[str, bytes], int] = {}
        """Checksums of all rows, which the digest loses when a row is deleted."""
        if path != ":memory:" and not Path(path).exists():
            private.create(Path(path))  # SQLite gives its other files the mode of this one
        commits = wal.read(log := wal.wal_path(Path(path)))
        if commits.problem:
            raise StoreDamaged(log, commits.problem)
        if commits.is_torn:
            logger.warning(
                "%s: the last commits are not all there, and are taken back: was there a power failure?", log
            )
        self._connection = connect(path)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute(f"PRAGMA synchronous = {sync}")
            self._prepare()
            self._check()
            # Frames of a commit that was cut short go: those that are written over them must not look damaged.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except FAILURES as error:
            self._connection.close()
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in _ENVIRONMENT or (code == sqlite3.SQLITE_READONLY and not os.access(path, os.W_OK)):
                raise StoreError(f"{path} cannot be used: {error}") from None
            problem = f"it is no store ({error})" if code == sqlite3.SQLITE_NOTADB else error
            raise StoreDamaged(path, problem) from None
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        """Create the table, or upgrade a table of format 1."""
        execute = self._connection.execute
        version = execute("PRAGMA user_version").fetchone()[0]
        tables = [sql for (sql,) in execute("SELECT sql FROM sqlite_master")]
        if tables not in ([_TABLE], [_TABLE_1]) and (tables or version):
            if version > FORMAT:
                raise StoreError(f"{self._path} has format {version}; this version reads format {FORMAT}")
            raise StoreDamaged(self._path, "its tables are not those that were made")
        if version not in (0, FORMAT - 1, FORMAT):
            raise StoreDamaged(
                self._path, f"it has format {version}, but tables of format {FORMAT}, unless a newer Fieldfare made it"
            )
        if (problem := execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise StoreDamaged(self._path, " ".join(problem.replace("*** in database main ***", "").split()))
        if tables == [_TABLE]:
            execute(f"PRAGMA user_version = {FORMAT}")  # fails if the file cannot be written to
            return
        old = execute("SELECT kind, key, value FROM rows").fetchall() if tables else []
        rows = [self._checked(*row) for row in old]
        execute("BEGIN IMMEDIATE")
        if tables:
            execute("DROP TABLE rows")
        execute(_TABLE)
        rows.append(digest_of(len(rows), sum(row.checksum for row in rows)))
        self._connection.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)
        execute(f"PRAGMA user_version = {FORMAT}")
        execute("COMMIT")

    def _checked(self, kind: str, key: bytes, value: bytes) -> Stored:
        """A row of an earlier version, with a first checksum. Now is the last time to notice nonsense."""
        try:
            decoded = _decode(key)
            _decode(value)
            if not isinstance(decoded, list) or not kind.isidentifier():
                raise ValueError("no such row")
            return Stored(kind, key, value, checksum_of(kind, key, value))
        except (ValueError, TypeError, AttributeError):
            raise StoreDamaged(self._path, f"{Stored(kind, key, value, None)} cannot be read") from None

    def _check(self) -> None:
        """Check that all rows are there, each as written."""
        bad: list[Stored] = []
        digest: Stored | None = None
        count = total = 0
        for row in map(Stored._make, self._connection.execute("SELECT kind, key, value, checksum FROM rows")):
            if not row.is_whole:
                bad.append(row)
            elif row.kind == DIGEST:
                digest = row
            else:
                self._checksums[row.kind, row.key] = row.checksum
                count += 1
                total += row.checksum
        if bad:
            more = f", and {len(bad) - 1} more," if len(bad) > 1 else ""
            raise StoreDamaged(self._path, f"{bad[0]}{more} has a wrong checksum")
        self._total = total
        if digest is None:
            raise StoreDamaged(self._path, "the row is missing that sums up the others")
        if digest != digest_of(count, total):
            expected = msgspec.msgpack.decode(digest.value)[0]
            wrong = f"{expected} rows belong there, and {count} are" if expected != count else "some rows are too old"
            raise StoreDamaged(self._path, wrong)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever committed, or all rows are gone."""
        return not self._checksums

    def commit(self, rows: Iterable[Row]) -> None:
        """Write rows, all or none. Of rows with the same key the last one counts."""
        with_values: list[tuple[str, bytes, bytes, int]] = []
        without: list[tuple[str, bytes]] = []
        checksums, count, total = self._checksums, len(self._checksums), self._total
        changed: dict[tuple[str, bytes], int] = {}
        for kind, key, value in {(row.kind, row.key): row for row in rows}.values():
            data = _encode(key)
            place = (kind, data)
            before = checksums.get(place)
            if before is not None:
                total -= before
                count -= 1
            if value is None:
                without.append(place)
                continue
            content = _encode(value)
            changed[place] = checksum = checksum_of(kind, data, content)
            with_values.append((kind, data, content, checksum))
            total += checksum
            count += 1
        if not with_values and not without:
            return
        with_values.append(digest_of(count, total))
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)", with_values)
            if without:
                connection.executemany("DELETE FROM rows WHERE kind = ? AND key = ?", without)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        checksums.update(changed)
        for place in without:
            checksums.pop(place, None)
        self._total = total

    def load(self) -> dict[str, dict[RowKey, Any]]:
        """All rows, by kind and key."""
        found: dict[str, dict[RowKey, Any]] = {}
        for kind, key, value in self._connection.execute("SELECT kind, key, value FROM rows"):
            if kind != DIGEST:
                found.setdefault(kind, {})[tuple(_decode(key))] = _decode(value)
        return found

    def close(self) -> None:
        """Close the SQLite file; the store cannot be used any more."""
        self._connection.close()


def connect(path: Path | str) -> sqlite3.Connection:
    """A connection to a file whose texts may be anything, if it is damaged."""
    # One thread at a time uses it, but not always the same one.
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.text_factory = _text
    return connection


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder().decode


def checksum_of(kind: str, key: bytes, value: bytes) -> int:
    """The checksum of a row. The length of the key is in it: nothing can go from the key to the value unnoticed."""
    return crc32(value, crc32(key, _seed(kind)) ^ len(key))


@cache
def _seed(kind: str) -> int:
    """Return the checksum of a kind; the cache stays small, since there are few kinds."""
    return crc32(kind.encode())


def digest_of(count: int, total: int) -> Stored:
    """Return the row that sums up `count` rows with a total of checksums."""
    key, value = _encode(()), _encode([count, total & _SUM])
    return Stored(DIGEST, key, value, checksum_of(DIGEST, key, value))
