"""`match_recognize`: SQL's row patterns on a DataFrame, which Spark's SQL lacks.

    from fieldfare.pipeline import match_recognize
    falls = match_recognize(prices, '''
        PARTITION BY symbol ORDER BY at
        MEASURES FIRST(price) AS high, LAST(down.price) AS low
        PATTERN (start down+ up+) DEFINE down AS price < PREV(price), up AS price > PREV(price)
    ''')

Spark moves no single rows between workers. A worker cuts its rows into buckets by a hash of the PARTITION BY columns,
and Spark moves each bucket as a block of Arrow, in one row of its own. The worker that gets a bucket sorts its rows and
finds the matches of all partitions in the bucket at once. Rows that are nothing but Parquet files are read by the
workers themselves, see `scan`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from fieldfare.patterns.row_patterns import compile_clause
from fieldfare.patterns.row_patterns.functions import plain
from fieldfare.patterns.row_patterns.sorting import codes_of
from fieldfare.pipeline.match.scan import Scan, scan_of
from fieldfare.pipeline.match.ways import Batches, quoted
from fieldfare.pipeline.workers import check_workers

_BLOCKS: Final = "bucket int, block binary"
_ROWS: Final = 1 << 20
_BYTES: Final = 1 << 28
"""rows and bytes that a worker collects before it cuts them into blocks"""
_RETURNED: Final = 1 << 16
"""rows of a batch of the output"""


def match_recognize(rows: DataFrame, clause: str, *, buckets: int | None = None) -> DataFrame:
    """Return the matches of a MATCH_RECOGNIZE clause in the rows of a DataFrame.

    Args:
        rows: a batch DataFrame.
        clause: the text of the clause, from PARTITION BY to DEFINE; see docs/reference/row-patterns.md.
        buckets: the number of buckets of partitions, by default `spark.sql.shuffle.partitions`. A worker holds all
            rows of a bucket in memory. Without PARTITION BY there is one bucket.

    Returns:
        With ONE ROW PER MATCH the PARTITION BY columns and the measures; with ALL ROWS PER MATCH the PARTITION BY and
        ORDER BY columns, the measures, and the other columns.
    """
    if rows.isStreaming:
        raise ValueError("match_recognize() takes no stream: a node detects patterns in events as they come")
    spark = rows.sparkSession
    check_workers(spark)
    compiled = compile_clause(clause, to_arrow_schema(rows.schema, timezone="UTC"))
    keys = [key.column for key in compiled.partition]
    count = int(buckets or spark.conf.get("spark.sql.shuffle.partitions") or 1) if keys else 1
    scan = scan_of(rows, compiled.columns)
    if isinstance(scan, Scan):
        sent, read = spark.range(0, len(scan.tasks), numPartitions=len(scan.tasks)), _files(scan)
    else:
        sent, read = rows.select(*(quoted(name) for name in compiled.columns)), _as_sent
    blocks = sent.mapInArrow(_cutting(read, keys, count), _BLOCKS).repartitionById(count, F.col("bucket"))
    return blocks.mapInArrow(_matching(clause), from_arrow_schema(compiled.schema))


def _as_sent(batches: Batches) -> Batches:
    return batches


def _files(scan: Scan) -> Callable[[Batches], Batches]:
    """Return the function that reads the files of a task."""

    def read(batches: Batches) -> Batches:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                yield from scan.batches(task)

    return read


def _cutting(read: Callable[[Batches], Batches], keys: Sequence[str], count: int) -> Callable[[Batches], Batches]:
    """Return the function that makes blocks of rows, each with the rows of one bucket."""

    def run(batches: Batches) -> Batches:
        for rows in _collected(read(batches)):
            if count == 1:
                yield _blocks([0], [rows])
                continue
            buckets = buckets_of([rows.column(key) for key in keys], count)
            order = np.argsort(buckets, kind="stable")
            present, starts = np.unique(buckets[order], return_index=True)
            ends = [*starts[1:], len(order)]
            ordered = rows.take(pa.array(order))
            slices = [ordered.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
            yield _blocks([int(one) for one in present], slices)

    return run


def buckets_of(columns: Sequence[Any], count: int) -> NDArray[np.uint16]:
    """Return the bucket of each row, the same for equal values in every process.

    >>> a, b, c = buckets_of([pa.array([5, None, 5]), pa.array(["x", "y", "x"])], 1000)
    >>> a == c, a == b
    (np.True_, np.False_)
    """
    mixed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        mixed = (mixed ^ _hashed(plain(column))) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(count)).astype(np.uint16)


def _hashed(column: Any) -> NDArray[np.uint64]:
    kind = column.type
    numbers = pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_temporal(kind)
    if (numbers and kind != pa.uint64()) or pa.types.is_boolean(kind):
        return codes_of(column).astype(np.uint64)
    encoded = column.dictionary_encode()
    values = [zlib.crc32(repr(value).encode()) for value in encoded.dictionary.to_pylist()]
    places = pc.fill_null(encoded.indices, len(values)).to_numpy(zero_copy_only=False)
    return np.asarray(np.array([*values, 1], np.uint64)[places])


def _collected(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield tables of many rows."""
    waiting: list[Any] = []
    count = size = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= _ROWS or size >= _BYTES:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, count, size = [], 0, 0
    if count:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _blocks(buckets: Sequence[int], tables: Sequence[Any]) -> Any:
    """Return tables as blocks, which are written one behind the other into the data of a column."""
    sink = pa.BufferOutputStream()
    places = [0]
    for table in tables:
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        places.append(sink.tell())
    offsets = pa.py_buffer(np.array(places, np.int32))
    blocks = pa.BinaryArray.from_buffers(pa.binary(), len(tables), [None, offsets, sink.getvalue()])
    return pa.record_batch([pa.array(buckets, pa.int32()), blocks], names=["bucket", "block"])


def _matching(clause: str) -> Callable[[Batches], Batches]:
    """Return the function that finds matches in all blocks of a bucket."""

    def run(batches: Batches) -> Batches:
        tables = [
            pa.ipc.open_stream(block.as_buffer()).read_all() for batch in batches for block in batch.column(1)
        ]  # fmt: skip
        if not tables:
            return
        rows = pa.concat_tables(tables)
        del tables
        compiled = compile_clause(clause, rows.schema)
        found = compiled.run(*compiled.in_order(rows))
        yield from cast("list[Any]", found.combine_chunks().to_batches(max_chunksize=_RETURNED))

    return run
