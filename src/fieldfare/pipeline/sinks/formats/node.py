"""The format `fieldfare_node` for writing: the rows of a stream, or of a table, are published to a running node.

    stream.writeStream.format("fieldfare_node").option("url", "ws://127.0.0.1:7400").option("order", "position").start()

The column `event` holds an event as JSON; without such a column, all columns are fields.

**A stream is published exactly once.** The node knows a query by a session, named after the query's id, which is part
of the checkpoint. The rows of a micro-batch are sorted, by the columns of `order` and then by the events, and numbered:
batch id × 2³² + 1, 2, 3, ... The node accepts no number twice. So a task or a batch may run twice, even with another
driver, and each row is published once. No row is published before all tasks of the batch have succeeded. The guarantee
needs

- the same rows for a batch that runs again, in any order and in any partitions: the source can be read
  again, and no function in between depends on chance or the time of day;
- a node that still knows the session: a session without use for `sessions.life_seconds`, by default a week, ends;
- a node with a folder: a node without a folder has lost its sessions after a restart.

The driver collects the rows of a batch: limit a batch by the source's `max_rows`.

**A table** is published at least once. With a `session` a table is published exactly once, too: the write counts as a
batch of the session, with the number in the option `batch`, so that a repetition under the same name publishes only the
missing rows. For other rows use another name, or the next number.
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
"""numbers of events that each batch has"""

Row = tuple[tuple[tuple[bool, Any], ...], bytes]
"""the sort key of a row, and the event in MessagePack"""


class NodeSinkOptions(options.Options, frozen=True):
    """The options of a node to publish to."""

    url: str
    """the address of the node, such as ws://127.0.0.1:7400"""
    token: str = ""
    """a token, for a node with security"""
    session: str = ""
    """the beginning of the session's name, `spark` by default; for a table, the whole name"""
    order: str = ""
    """the columns that give the order of the rows in a batch, separated by commas"""
    batch: Annotated[int, msgspec.Meta(ge=0)] = 0
    """for a table: its batch number in the session"""

    @property
    def columns(self) -> list[str]:
        """The columns in the option `order`, as a list."""
        return [name.strip() for name in self.order.split(",") if name.strip()]


@dataclass(frozen=True)
class Rows(WriterCommitMessage):
    """The rows of a task, in order, and the id of the query."""

    query: str
    rows: list[Row]


class NodeWriter(DataSourceArrowWriter):
    """The writer for a table."""

    def __init__(self, given: NodeSinkOptions) -> None:
        self._given = given

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Rows:
        """Collect the rows of a task, as events."""
        return collected(iterator, self._given.columns)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Publish the rows of all tasks, when all tasks have succeeded."""
        _publish(self._given, self._given.session, self._given.batch, _ordered(messages))


class NodeStreamWriter(DataSourceStreamArrowWriter):
    """The writer that publishes each micro-batch of a stream to a node."""

    def __init__(self, given: NodeSinkOptions) -> None:
        self._given = given

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Rows:
        """Collect the rows of a task, as events."""
        return collected(iterator, self._given.columns)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        """Publish the rows of a batch, when all tasks of the batch have succeeded."""
        query = next((one.query for one in messages if isinstance(one, Rows)), "")
        _publish(self._given, f"{self._given.session or 'spark'}:{query}", batchId, _ordered(messages))


Writer = TypeVar("Writer", NodeWriter, NodeStreamWriter)


def writer_of(kind: type[Writer], name: str, given: Mapping[str, str], schema: StructType) -> Writer:
    """Make a writer; OptionError if the options do not fit the columns."""
    options.needs(name, "websockets", "client")
    read = options.read(name, given, NodeSinkOptions)
    for column in read.columns:
        if column not in schema.names:
            raise options.OptionError(f"{name}: there is no column {column} to order by; there are {schema.names}")
    return kind(read)


def collected(batches: Iterable[pa.RecordBatch], order: Sequence[str]) -> Rows:
    """Return the rows of a task in their order; EventError names a row that is no event."""
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
    """Return the events of all tasks, in the order of the batch."""
    return [event for _, event in heapq.merge(*(one.rows for one in messages if isinstance(one, Rows)))]


def _publish(given: NodeSinkOptions, session: str, batch: int, found: Sequence[bytes]) -> None:
    from fieldfare.pipeline.sinks.formats.node_publisher import publish  # noqa: PLC0415 - it needs more than Spark does

    if found and session:
        call(lambda: publish(given.url, given.token, session, batch * BATCH + 1, found), NODE_BACKOFF, ConnectionLost)
    elif found:  # nobody would know what was published before
        publish(given.url, given.token, session, 1, found)
