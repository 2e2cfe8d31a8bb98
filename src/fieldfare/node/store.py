"""`Store`: the rows of a `DurableBroker` on disk, in one SQLite file.

Rows of a commit are written all or none, and when `commit` returns they survive the process being killed; with
`sync="full"` the machine losing power, too. A commit has a fixed cost, so many steps should share one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from fieldfare.node.kept import Key, Row

FORMAT: Final = 1


class StoreError(ValueError):
    """A file that is no store, or not one that this version can read."""


class Store:
    """Rows in a file.

    >>> store = Store(":memory:")
    >>> store.commit([Row("session", ("ana",), 3), Row("outbox", ("rome", 1), b"hello")])
    >>> store.commit([Row("outbox", ("rome", 1))])
    >>> store.load()
    {'session': {('ana',): 3}}
    """

    def __init__(self, path: Path | str, *, sync: Literal["normal", "full"] = "normal") -> None:
        """Open a store; one that is not there is made."""
        # One thread at a time uses it, but not always the same one.
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute(f"PRAGMA synchronous = {sync}")
            found = self._connection.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, FORMAT):
                raise StoreError(f"{path} has format {found}; this version reads format {FORMAT}")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS rows"
                " (kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
            )
            self._connection.execute(f"PRAGMA user_version = {FORMAT}")
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise StoreError(f"{path} is no store: {error}") from None
        except StoreError:
            self._connection.close()
            raise

    def commit(self, rows: Iterable[Row]) -> None:
        """Write rows, all or none. Of rows with the same key the last one counts."""
        with_values: list[tuple[str, bytes, bytes]] = []
        without: list[tuple[str, bytes]] = []
        for kind, key, value in {(row.kind, row.key): row for row in rows}.values():
            place = (kind, msgspec.msgpack.encode(key))
            if value is None:
                without.append(place)
            else:
                with_values.append((*place, msgspec.msgpack.encode(value)))
        if not with_values and not without:
            return
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.executemany("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", with_values)
            self._connection.executemany("DELETE FROM rows WHERE kind = ? AND key = ?", without)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def load(self) -> dict[str, dict[Key, Any]]:
        """All rows, by kind and key."""
        found: dict[str, dict[Key, Any]] = {}
        for kind, key, value in self._connection.execute("SELECT kind, key, value FROM rows"):
            found.setdefault(kind, {})[tuple(msgspec.msgpack.decode(key))] = msgspec.msgpack.decode(value)
        return found

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
