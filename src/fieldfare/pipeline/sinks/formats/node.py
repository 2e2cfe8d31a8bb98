"""Publishing the rows of a stream, or of a table, to a running node: the format `fieldfare_node`.

    stream.writeStream.format("fieldfare_node").option("url", "ws://127.0.0.1:7400").option("order", "position").start()

The column `event` holds an event as JSON; without such a column, all columns are fields of it.

**A stream is published exactly once.** The node knows a query by a session of its own, named after the query's id,
which is part of the checkpoint. The rows of a micro-batch are put in one order, by the columns of `order` and then by
the events themselves, and numbered: batch id × 2³² + 1, 2, 3, ... The node takes no number twice. So tasks may be done
twice, a batch may be done again after a crash, by another driver, and each row is published once. Nothing is published
before all tasks of the batch have succeeded. This rests on

- Spark giving a batch that is done again the same rows, in any order and in any partitions: the source can be read
  again, and no function in between depends on chance or the time of day;
- the node still knowing the session: it forgets one that nobody used for `sessions.life_seconds`, by default a week;
- the node's folder: a node that keeps all in memory has forgotten everything when it is started again.

The driver collects the rows of a batch: bound it by the source's `max_rows`.

**A table** is published at least once. With a `session` it is exactly once, too: the write counts as a batch of that
session, number 0 or what the option `batch` says, so doing it again under the same name, after a failure, publishes
what is missing. For other rows use another name, or the next number.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from fieldfare.client.errors import ConnectionLost
from fieldfare.events import msgpack
from fieldfare.events.limits import EventError
from fieldfare.pipeline import options
from fieldfare.pipeline.sinks.formats import events
from fieldfare.retry import Backoff, call

NODE_BACKOFF: Final = Backoff(0.2, 10.0, attempts=9)
"""while a node is away for a moment, during a restart for example; half a minute in all"""
BATCH: Final = 1 << 32
"""numbers that each batch has for its events"""

Row = tuple[tuple[tuple[bool, Any], ...], bytes]
"""what a row is ordered by, and its event in MessagePack"""


class NodeSinkOptions(options.Options, frozen=True):
    """What can be said of a node to publish to."""

    url: str
    """such as ws://127.0.0.1:7400"""
    token: str = ""
    """who we are, for a node that wants to know"""
    session: str = ""
    """how the name of the session begins, `spark` if not given; for a table, the whole name"""
    order: str = ""
    """columns, with commas between them, in whose order the rows of a batch are published"""
    batch: Annotated[int, msgspec.Meta(ge=0)] = 0
    """of a table: which batch of its session it is"""

    @property
    def columns(self) -> list[str]:
        """The columns of `order`."""
        return [name.strip() for name in self.order.split(",") if name.strip()]


@dataclass(frozen=True)
class Rows(WriterCommitMessage):
    """What a task has: its rows, in order, and the query that it belongs to."""

    query: str
    rows: list[Row]


class NodeWriter(DataSourceArrowWriter):
    """Publishes a table."""

    def __init__(self, given: NodeSinkOptions) -> None:
        self._given = given

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Rows:
        """What a task does: it reads its rows as events."""
        return collected(iterator, self._given.columns)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """All tasks have succeeded: publish."""
        _publish(self._given, self._given.session, self._given.batch, _ordered(messages))


class NodeStreamWriter(DataSourceStreamArrowWriter):
    """Publishes a stream."""

    def __init__(self, given: NodeSinkOptions) -> None:
        self._given = given

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Rows:
        """What a task does: it reads its rows as events."""
        return collected(iterator, self._given.columns)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """All tasks of a batch have succeeded: publish."""
        query = next((one.query for one in messages if isinstance(one, Rows)), "")
        _publish(self._given, f"{self._given.session or 'spark'}:{query}", batchId, _ordered(messages))


Writer = TypeVar("Writer", NodeWriter, NodeStreamWriter)


def writer_of(kind: type[Writer], name: str, given: Mapping[str, str], schema: StructType) -> Writer:
    """A writer, if its options fit the columns."""
    options.needs(name, "websockets", "client")
    read = options.read(name, given, NodeSinkOptions)
    for column in read.columns:
        if column not in schema.names:
            raise options.OptionError(f"{name}: there is no column {column} to order by; there are {schema.names}")
    return kind(read)


def collected(batches: Iterable[pa.RecordBatch], order: Sequence[str]) -> Rows:
    """The rows of a task in their order; EventError says which row is no event."""
    rows: list[Row] = []
    for batch in batches:
        keys = [batch.column(name).to_pylist() for name in order]
        for number, event in enumerate(events.of_batch(batch)):
            key = tuple((column[number] is not None, column[number]) for column in keys)
            if isinstance(event, EventError):
                where = f" where {', '.join(order)} is {[value for _, value in key]}" if order else ""
                raise EventError(
                    event.field, f"{event.problem} (row {len(rows) + 1} of a task{where}): correct it, or filter it out"
                )
            rows.append((key, msgpack.encode(event)))
    rows.sort()
    context = TaskContext.get()
    return Rows((context and context.getLocalProperty("sql.streaming.queryId")) or "", rows)


def _ordered(messages: Iterable[WriterCommitMessage | None]) -> list[bytes]:
    """The events of all tasks, in the order of the batch."""
    return [event for _, event in heapq.merge(*(one.rows for one in messages if isinstance(one, Rows)))]


def _publish(given: NodeSinkOptions, session: str, batch: int, found: Sequence[bytes]) -> None:
    from fieldfare.pipeline.sinks.formats.node_publisher import publish  # noqa: PLC0415 - it needs more than Spark does

    if found and session:
        call(lambda: publish(given.url, given.token, session, batch * BATCH + 1, found), NODE_BACKOFF, ConnectionLost)
    elif found:  # nobody would know what was published before
        publish(given.url, given.token, session, 1, found)
