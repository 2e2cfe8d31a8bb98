"""`fieldfare_match` in SQL.

    SELECT * FROM fieldfare_match(TABLE(events), 'subscriptions.parquet')

The function accepts any table; the result has the columns of the table and those that `match_events` adds. The
subscriptions are a Parquet file or a catalogue. Spark passes rows to a table function one by one, so the function is
for thousands of events; for millions, make a view: `match_events(events,
subscriptions).createOrReplaceTempView("deliveries")`.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import udtf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult

from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription, SubscriptionError
from fieldfare.pipeline.match.operator import ADDED, matches
from fieldfare.pipeline.workers import check_workers

NAME: Final = "fieldfare_match"
_AT_ONCE: Final = 2048
_NEEDED: Final = frozenset({"id", "filter"})


def register(spark: SparkSession) -> None:
    """Make the table function known to a session."""
    check_workers(spark)
    spark.udtf.register(NAME, udtf(_Match))  # type: ignore[arg-type]  # its return type is what `analyze` says


@dataclass
class _Analysed(AnalyzeResult):
    """The data that Spark passes from the analysis of a query to the workers."""

    path: str = ""
    version: int = 0
    row: StructType = field(default_factory=StructType)


class _Match:
    """The table function: rows are gathered, and matched as a batch."""

    def __init__(self, analysed: _Analysed) -> None:
        self._opened = catalogue.opened(analysed.path, analysed.version)
        self._row = analysed.row
        self._type = pa.struct([(field.name, to_arrow_type(field.dataType, timezone="UTC")) for field in analysed.row])
        self._rows: list[dict[str, Any]] = []

    @staticmethod
    def analyze(events: AnalyzeArgument, subscriptions: AnalyzeArgument) -> _Analysed:
        """The columns of the result; the catalogue to match with."""
        if not events.isTable or not isinstance(events.dataType, StructType):
            raise ValueError(f"the first argument of {NAME} is a table: {NAME}(TABLE(events), 'subscriptions.parquet')")
        if not isinstance(subscriptions.value, str):
            raise ValueError(f"the second argument of {NAME} is the path of subscriptions, as a constant text")
        taken = [name for name in ADDED if name in events.dataType.names]
        if taken:
            raise ValueError(f"the table has a column {taken[0]!r} already, which {NAME} adds: rename it")
        path = _catalogue(subscriptions.value)
        version = catalogue.current(path)
        whole = pa.types.is_int64(catalogue.opened(path, version).ids.type)
        added = [LongType() if whole else StringType(), StringType(), LongType()]
        schema = [*events.dataType, *(StructField(name, kind) for name, kind in zip(ADDED, added, strict=True))]
        return _Analysed(StructType(schema), path=path, version=version, row=events.dataType)

    def eval(self, event: Row, _: str) -> Iterator[tuple[Any, ...]]:
        """Take a row; now and then give the matches of many."""
        self._rows.append(_with_zones(event, self._row))
        if len(self._rows) >= _AT_ONCE:
            yield from self.terminate()

    def terminate(self) -> Iterator[tuple[Any, ...]]:
        """Yield the matches of the rows that wait."""
        rows, self._rows = self._rows, []
        given = pa.array(rows, self._type)
        found = (one for array in matches(self._opened, given) for one in array.to_pylist())
        for row, matched in zip(rows, found, strict=True):
            for match in matched["matches"]:
                yield (*row.values(), match["subscription"], match["owner"], matched["snapshot"])


def _with_zones(value: Any, kind: DataType) -> Any:
    """Return a value with timestamps in UTC and with dictionaries for structs.

    Spark gives a timestamp as local time of the worker's machine, whatever the zone of the Spark session is.
    """
    match kind:
        case _ if value is None:
            return None
        case TimestampType():
            return value.astimezone(UTC)
        case StructType():
            return {field.name: _with_zones(one, field.dataType) for field, one in zip(kind, value, strict=True)}
        case ArrayType():
            return [_with_zones(one, kind.elementType) for one in value]
        case MapType():
            return {_with_zones(key, kind.keyType): _with_zones(one, kind.valueType) for key, one in value.items()}
        case _:
            return value


def _catalogue(path: str) -> str:
    """Return the catalogue at a path, or a catalogue made from the Parquet file there, until the file changes."""
    if catalogue.is_catalogue(path):
        return path
    try:
        table = pa.parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise SubscriptionError(f"{path} is neither a catalogue of subscriptions nor a Parquet file: {error}") from None
    files = sorted(Path(path).rglob("*.parquet")) if Path(path).is_dir() else [Path(path)]
    state = repr([(str(file.absolute()), file.stat().st_mtime_ns, file.stat().st_size) for file in files])
    made = Path(tempfile.gettempdir()) / f"fieldfare-subscriptions-{hashlib.sha256(state.encode()).hexdigest()[:24]}"
    if not catalogue.is_catalogue(made):
        catalogue.write_version(made, (Subscription(**row) for row in _rows(table, path)))
    return str(made)


def _rows(table: Any, path: str) -> Iterator[dict[str, Any]]:
    known = [name for name in Subscription._fields if name in table.column_names]
    if not _NEEDED.issubset(known):
        raise SubscriptionError(
            f"subscriptions need the columns id and filter; there are {', '.join(table.column_names)}"
        )
    rows = table.select(known).to_pylist()
    return ({name: value for name, value in row.items() if value is not None or name in _NEEDED} for row in rows)
