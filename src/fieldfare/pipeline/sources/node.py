"""`fieldfare_node`: a running node, as a stream of what a filter matches, and as a sink (see `sinks.node`).

    spark.readStream.format("fieldfare_node").option("url", "ws://127.0.0.1:7400").option("filter", "price < 10").load()

Offsets are positions in the node's log: `{"node": name, "position": n, "life": l}` means that all up to n was read that
matches, in a life of the log: a node that went back in time has begun another one, and refuses what it has forgotten.
For each micro-batch the driver asks the node for the next stretch of its log (see `replay`) and hands the rows to the
tasks. A batch that must be done again is asked for again, and gives the same rows.

The last position that was read is asked for once more, to see that it is still there. If not, the node may have deleted
what follows it, too; that is an error, or, with `gaps` at `"skip"`, a warning.

A node replays at most `sessions.limit` events at once. Whoever is further behind reads the node's folder, with
`fieldfare_log`.
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
"""rows that are asked for in one conversation, at most"""
PIECE: Final = 10_000
"""rows of a task"""
Offset = dict[str, Any]
"""`node`, whose positions these are, or "" if nothing was read yet; `position`, and the `life` of the node's log"""
IDLE: Final = 1.0
"""seconds to wait for the node to have something"""
TRIES: Final = 3

logger = logging.getLogger("fieldfare.pipeline")


class NodeOptions(options.Options, frozen=True):
    """What can be said of a node to read from."""

    url: str
    """such as ws://127.0.0.1:7400"""
    filter: str = "TRUE"
    """what is wanted, in the filter language"""
    token: str = ""
    """who we are, for a node that wants to know"""
    since: Annotated[int, msgspec.Meta(ge=0)] = 0
    """the first position; 0: the oldest that the node has"""
    max_rows: Annotated[int, msgspec.Meta(ge=1)] = 20_000
    """rows of a micro-batch, at most; the driver holds them"""
    gaps: Literal["fail", "skip"] = "fail"
    """what to do if the node has deleted what was not read: `fail`, or `skip` it with a warning"""


class GapError(ValueError):
    """The node does not have, or does not give, what comes next."""


class NodeSource(DataSource):
    """A running node."""

    @classmethod
    def name(cls) -> str:
        """Under this name Spark knows it."""
        return "fieldfare_node"

    def schema(self) -> str:
        """The columns; `sequence` is null, as a node does not tell it."""
        return rows.COLUMNS

    def streamReader(self, schema: StructType) -> NodeStreamReader:  # noqa: N802 - Spark's name
        """What a filter matches, as it comes."""
        options.needs(self.name(), "websockets", "client")
        given = options.read(self.name(), self.options, NodeOptions)
        parse(given.filter)  # so that a mistake is told at once
        return NodeStreamReader(given)

    def writer(self, schema: StructType, overwrite: bool) -> NodeWriter:
        """Publishes the rows of a table."""
        return writer_of(NodeWriter, self.name(), self.options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> NodeStreamWriter:  # noqa: N802 - Spark's name
        """Publishes the rows of a stream."""
        return writer_of(NodeStreamWriter, self.name(), self.options, schema)


class RowsPartition(InputPartition):
    """Some rows, for one task."""

    value: list[JournalEntry]


class NodeStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a node's log through the node."""

    def __init__(self, given: NodeOptions) -> None:
        self._given = given
        self._until: float | None = None
        self._read: tuple[Offset, Offset, list[JournalEntry]] | None = None
        """the last stretch that was read, until tasks have it"""

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Before the first row."""
        return {"node": "", "position": max(self._given.since - 1, 0)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much a micro-batch may have."""
        return ReadMaxRows(self._given.max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Go no further than to what is logged by now; the clocks of node and driver should agree."""
        self._until = time.time()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """How far the next micro-batch goes: the node is asked for its rows."""
        node, life, entries = self._stretch(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        if self._until is not None:
            entries = [entry for entry in entries if entry.time <= self._until]
        if not entries:
            return start
        end: Offset = {"node": node, "position": entries[-1].position, "life": life}
        self._read = start, end, entries
        return end

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The rows, in pieces; they are asked for again if this batch was begun before a restart."""
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
        """The rows of a piece."""
        return rows.of_entries(partition.value, counted=False)

    def __getstate__(self) -> dict[str, Any]:
        """Tasks get their rows by partitions."""
        return {**self.__dict__, "_read": None}

    def _stretch(self, start: Offset, limit: int | None, end: int | None = None) -> tuple[str, str, list[JournalEntry]]:
        """What comes after an offset, with node and life: so many rows, or all up to an end, or all."""
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
        """The last position that was read is not there any more."""
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
