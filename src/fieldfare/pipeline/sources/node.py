"""The format `fieldfare_node`: a running node, as a stream of the events that match a filter, and as a sink.

    spark.readStream.format("fieldfare_node").option("url", "ws://127.0.0.1:7400").option("filter", "price < 10").load()

Offsets are positions in the node's log: `{"node": name, "position": n, "life": l}` means that all matching events up to
n were read, in a life of the log: a node that went back in time has begun another life, and refuses positions of the
life before. For each micro-batch the driver requests the next stretch of the log (see `replay`) and passes the rows to
the tasks. A batch that runs again requests the same stretch, and gets the same rows.

The last read position is requested once more, to see that the log still has it. If not, the node may have deleted later
positions, too, which is an error, or, with `gaps` at `"skip"`, a warning.

A node replays at most `sessions.limit` events at once. A reader that is further behind reads the node's folder, with
`fieldfare_log`. `sinks.formats.node` has the writers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Any, Final, Literal

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from fieldfare.client.errors import ConnectionLost, Refused
from fieldfare.filters import parse
from fieldfare.pipeline import options
from fieldfare.pipeline.sinks.formats.node import NODE_BACKOFF, NodeStreamWriter, NodeWriter, writer_of
from fieldfare.pipeline.sources import rows
from fieldfare.protocol.journal import JournalEntry
from fieldfare.retry import call

AT_ONCE: Final = 50_000
"""rows of a request at most"""
PIECE: Final = 10_000
"""rows of a task"""
Offset = dict[str, Any]
"""`node`, whose positions these are, or "" if nothing was read yet; `position`, and the `life` of the node's log"""
IDLE: Final = 1.0
"""seconds to wait for new events"""
TRIES: Final = 3

logger = logging.getLogger("fieldfare.pipeline")


class NodeOptions(options.Options, frozen=True):
    """The options of a node to read from."""

    url: str
    """the address of the node, such as ws://127.0.0.1:7400"""
    filter: str = "TRUE"
    """the filter of the events"""
    token: str = ""
    """a token, for a node with security"""
    since: Annotated[int, msgspec.Meta(ge=0)] = 0
    """the first position; 0: the oldest that the node has"""
    max_rows: Annotated[int, msgspec.Meta(ge=1)] = 20_000
    """rows of a micro-batch at most; the driver holds them"""
    gaps: Literal["fail", "skip"] = "fail"
    """the reaction to events that were deleted before they were read: `fail`, or `skip` with a warning"""


class GapError(ValueError):
    """The node lacks the next events, or refuses to replay them."""


class NodeSource(DataSource):
    """The data source that Spark knows as `fieldfare_node`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(...)`."""
        return "fieldfare_node"

    def schema(self) -> str:
        """Return the columns of the rows; `sequence` is null, because a node does not tell sequence numbers."""
        return rows.COLUMNS

    def streamReader(self, schema: StructType) -> NodeStreamReader:  # noqa: N802 - Spark's name
        """Return a reader of the events that match the filter."""
        options.needs(self.name(), "websockets", "client")
        given = options.read(self.name(), self.options, NodeOptions)
        parse(given.filter)  # so that a mistake is told at once
        return NodeStreamReader(given)

    def writer(self, schema: StructType, overwrite: bool) -> NodeWriter:
        """Return the writer for a table."""
        return writer_of(NodeWriter, self.name(), self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NodeStreamWriter:  # noqa: N802 - Spark's name
        """Return the writer for a stream."""
        return writer_of(NodeStreamWriter, self.name(), self.options, schema)


class RowsPartition(InputPartition):
    """Some rows, for a single task."""

    value: list[JournalEntry]


class NodeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader of a node's log through the node."""

    def __init__(self, given: NodeOptions) -> None:
        self._given = given
        self._until: float | None = None
        self._read: tuple[Offset, Offset, list[JournalEntry]] | None = None
        """the last requested stretch, until the tasks have it"""

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the offset before the first row."""
        return {"node": "", "position": max(self._given.since - 1, 0)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the largest number of rows in a micro-batch."""
        return ReadMaxRows(self._given.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end of the run at the present time; the clocks of node and driver should agree."""
        self._until = time.time()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Return the end of the next micro-batch, whose rows are requested from the node."""
        node, life, entries = self._stretch(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        if self._until is not None:
            entries = [entry for entry in entries if entry.time <= self._until]
        if not entries:
            return start
        end: Offset = {"node": node, "position": entries[-1].position, "life": life}
        self._read = start, end, entries
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the rows in pieces; a batch that was begun before a restart requests its rows again."""
        if start["position"] >= end["position"]:
            return []
        read, self._read = self._read, None
        if read is not None and read[:2] == (start, end):
            entries = read[2]
        else:
            _, _, entries = self._stretch(start, None, end["position"])
            if not entries or entries[-1].position != end["position"]:
                raise GapError(
                    f"{self._given.url} has no event at position {end['position']} that matches, and it was read:"
                    " the node has lost it, or the filter is another one"
                )
        return [RowsPartition(entries[begin : begin + PIECE]) for begin in range(0, len(entries), PIECE)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of a piece."""
        return rows.of_entries(partition.value, counted=False)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the requested rows, which tasks get by partitions."""
        return {**self.__dict__, "_read": None}

    def _stretch(self, start: Offset, limit: int | None, end: int | None = None) -> tuple[str, str, list[JournalEntry]]:
        """Return node, life and rows after an offset: at most `limit` rows, or all rows up to `end`, or all."""
        from fieldfare.pipeline.sources.replay import Asked, replay  # noqa: PLC0415 - it needs more than Spark does

        given, found = self._given, list[JournalEntry]()
        node, last, tries, life = start["node"], start["position"], TRIES, start.get("life", "")
        while tries:
            known = node != ""  # then the last position was read, and must still be there
            room = min(AT_ONCE, AT_ONCE if limit is None else limit - len(found)) + known
            wait = 0.0 if found or self._until is not None or end is not None else IDLE
            since = last if known else last + 1
            asked = Asked(given.url, given.token, given.filter, life if known else "")
            try:
                asking = partial(replay, asked, since, room, known=known, wait=wait)
                stretch = call(asking, NODE_BACKOFF, ConnectionLost)
            except Refused as error:
                raise GapError(
                    f"{given.url} does not replay {given.filter} from position {since} on: {error.reason}. What is too"
                    " much for it can be read from its folder, with fieldfare_log"
                ) from None
            if known and node != stretch.node:
                raise GapError(f"{given.url} is the node {stretch.node}, and positions of {node} were read before")
            new = [
                JournalEntry(one.position, one.time, one.publisher, 0, bytes(one.event), b"") for one in stretch.found
            ]
            if known and (new or not stretch.more):
                new = new[1:] if new and new[0].position == last else self._gap(last, new)
            found += new if end is None else [entry for entry in new if entry.position <= end]
            if new:
                node, last, tries, life = stretch.node, new[-1].position, TRIES, stretch.life
            else:
                tries -= 1
            if not stretch.more or len(found) == limit or (end is not None and last >= end):
                return node, life, found
        raise GapError(f"{given.url} drops what we ask for: more than its sessions.limit waits; read its log instead")

    def _gap(self, last: int, new: list[JournalEntry]) -> list[JournalEntry]:
        """Handle the loss of the last read position, by an error or a warning."""
        gone = (
            f"{self._given.url} no longer has position {last}, the last that was read: it may have deleted what"
            " follows, too, or the filter is another one"
        )
        if self._given.gaps == "fail":
            raise GapError(
                f"{gone}. Let it keep more (log.max_bytes, log.max_seconds), or set the option gaps to 'skip'"
            )
        logger.warning("%s; going on with what is there", gone)
        return new
