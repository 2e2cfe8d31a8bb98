"""Rules as queries of SQLite, in the words of `pysigma-backend-sqlite`: a query for each rule, over a table of events.

pySigma and its backend are no part of Fieldfare: `pip install --target peers pysigma pysigma-backend-sqlite`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_MISSING: Final = re.compile(r"no such column: (.+)")
_ALL: Final = "SELECT * FROM logs "
_COUNT: Final = "SELECT count(*) FROM logs "
_COLUMNS: Final = 2_000
"""the most columns of a table in SQLite"""


def missing() -> str | None:
    """Return a message about a missing package, or None."""
    if importlib.util.find_spec("sigma") is None or importlib.util.find_spec("sigma.backends.sqlite") is None:
        return "pySigma is not installed: pip install --target peers pysigma pysigma-backend-sqlite"
    return None


def queries(folder: Path, names: Iterable[str]) -> list[str]:
    """Return the queries of the rules that the backend can express; a name is a file and the number of a rule."""
    collection: Any = importlib.import_module("sigma.collection").SigmaCollection
    backend: Any = importlib.import_module("sigma.backends.sqlite").sqliteBackend()
    found: list[str] = []
    for file in dict.fromkeys(name.rpartition(":")[0] for name in names):
        with contextlib.suppress(Exception):  # of whatever kind: the backend cannot express the rule
            found += backend.convert(collection.from_yaml((folder / file).read_text("utf-8")))
    return [_COUNT + one.removeprefix(_ALL) for one in found if one.startswith(_ALL)]


@contextlib.contextmanager
def table(events: Sequence[Mapping[str, object]], wanted: Iterable[str]) -> Iterator[sqlite3.Connection]:
    """Make a table of events in memory, with a column for each field of an event and of the queries."""
    keys = list(dict.fromkeys(key for event in events for key in event))[:_COLUMNS]
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.create_function("regexp", 2, _found, deterministic=True)
        database.execute(f"CREATE TABLE logs ({', '.join(map(_column, keys))})")
        places = ", ".join("?" * len(keys))
        database.executemany(
            f"INSERT INTO logs VALUES ({places})",  # noqa: S608 - question marks
            ([event.get(key) for key in keys] for event in events),
        )
        for query in wanted:
            counted(database, query)
        yield database


def counted(database: sqlite3.Connection, query: str) -> int:
    """Return the number of events of a query; a field that no event has becomes a column without values."""
    while True:
        try:
            return int(database.execute(query).fetchone()[0])
        except sqlite3.OperationalError as error:
            field = _MISSING.fullmatch(str(error))
            if field is None:
                return 0
            database.execute(f"ALTER TABLE logs ADD COLUMN {_column(field[1])}")


def _column(name: str) -> str:
    quoted = name.replace('"', '""')
    return f'"{quoted}" TEXT COLLATE NOCASE'


def _found(pattern: str, value: object) -> bool:
    return value is not None and re.search(pattern, str(value)) is not None
