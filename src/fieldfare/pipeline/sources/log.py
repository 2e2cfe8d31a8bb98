"""The format `fieldfare_log`: the event log in a node's folder, in batch and as a stream, while the node runs or not.

Also the archive of a log, a folder or a URL such as `s3://bucket/oslo` (the node's `log.archive`).

    spark.read.format("fieldfare_log").load("node-data")
    spark.readStream.format("fieldfare_log").option("max_rows", 50_000).load("node-data")

Offsets are positions: `{"position": n}` means that all positions up to n were read. Entries never change, so the same
offsets give the same rows, and a stream goes on from its checkpoint without loss or repetition. Positions that the node
deleted before they were read are an error, or, with `gaps` at `"skip"`, a warning with the positions.

All machines that run tasks must see the folder under the same path.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from fieldfare.node.storage.log import LogError
from fieldfare.objects import is_url
from fieldfare.pipeline import options
from fieldfare.pipeline.sources import rows, segments
from fieldfare.pipeline.sources.segments import Folder, Part, Slice

Gaps = Literal["fail", "skip"]
Offset = dict[str, int]
MAX_ROWS: Final = 100_000

logger = logging.getLogger("fieldfare.pipeline")


class LogOptions(options.Options, frozen=True):
    """The options of a node's log."""

    path: str
    """the folder of a node, the folder `log` in it, or the archive of a log"""
    since: Annotated[int, msgspec.Meta(ge=0)] = 0
    """the first position; 0: the oldest in the log"""
    max_rows: Annotated[int, msgspec.Meta(ge=1)] = MAX_ROWS
    """rows of a micro-batch at most"""
    gaps: Gaps = "fail"
    """the reaction to positions that were deleted before they were read: `fail`, or `skip` with a warning"""


class LogSource(DataSource):
    """The data source that Spark knows as `fieldfare_log`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(...)`."""
        return "fieldfare_log"

    def schema(self) -> str:
        """Return the columns of the rows."""
        return rows.COLUMNS

    def reader(self, schema: StructType) -> LogReader:
        """Return a reader of all present entries."""
        given = self._given()
        return LogReader(_log_in(given.path), given.since, given.gaps)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: N802 - Spark's name
        """Return a reader of all present and future entries."""
        given = self._given()
        return LogStreamReader(_log_in(given.path), given.since, given.max_rows, given.gaps)

    def _given(self) -> LogOptions:
        return options.read(self.name(), self.options, LogOptions)


class SlicePartition(InputPartition):
    """A slice of a log, for a single task."""

    value: Slice


class LogReader(DataSourceReader):
    """The reader of a log in batch."""

    def __init__(self, folder: Path | str, since: int, gaps: Gaps) -> None:
        self._folder, self._since, self._gaps = folder, since, gaps

    def partitions(self) -> Sequence[InputPartition]:
        """Return a task for each slice of each segment."""
        parts = Folder(self._folder).parts()
        first = _first(self._folder, parts, self._since or parts[0].first, self._gaps)
        return [SlicePartition(piece) for piece in segments.slices(parts, first, parts[-1].last)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of a slice."""
        return segments.read(self._folder, partition.value)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader that follows a growing log, from position to position."""

    def __init__(self, folder: Path | str, since: int, max_rows: int, gaps: Gaps) -> None:
        self._folder, self._since, self._max_rows, self._gaps = Folder(folder), since, max_rows, gaps
        self._target: int | None = None

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the offset before the first row."""
        return {"position": (self._since or self._folder.parts()[0].first) - 1}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the largest number of rows in a micro-batch."""
        return ReadMaxRows(self._max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Fix the end of the run at the present end of the log."""
        self._target = self._folder.parts()[-1].last

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        """Return the end of the next micro-batch."""
        parts, position = self._folder.parts(), start["position"]
        last = parts[-1].last
        if last < position and position >= self._since:
            raise LogError(
                f"{self._folder.path} ends at position {last}, and up to {position} was read: it lost its end, or is"
                " the folder of another node; begin anew with another checkpoint"
            )
        last = last if self._target is None else min(last, self._target)
        if isinstance(limit, ReadMaxRows):
            last = min(last, max(position, parts[0].first - 1) + limit.max_rows)
        return {"position": max(position, last)}

    def reportLatestOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the end of the log."""
        return {"position": self._folder.parts()[-1].last}

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return a task for each slice of each segment."""
        parts = self._folder.parts()
        if start["position"] >= end["position"]:
            return []
        if parts[-1].last < end["position"]:
            raise LogError(
                f"{self._folder.path} ends at position {parts[-1].last}, and a batch up to {end['position']} was begun:"
                " it lost its end, or is the folder of another node; begin anew with another checkpoint"
            )
        first = _first(self._folder.path, parts, start["position"] + 1, self._gaps)
        return [SlicePartition(piece) for piece in segments.slices(parts, first, end["position"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of a slice."""
        return segments.read(self._folder.path, partition.value)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the driver's knowledge of the folder, which tasks do not need."""
        return {**self.__dict__, "_folder": Folder(self._folder.path)}


def _log_in(path: str) -> Path | str:
    """Return the folder with the segments, for the folder of a node or the folder `log` in it."""
    if is_url(path):
        return path
    folder = Path(path)
    folder = folder / "log" if (folder / "log").is_dir() else folder
    if not folder.is_dir():
        raise options.OptionError(f"fieldfare_log: there is no folder {path}: give the folder of a node (its `data`)")
    return folder


def _first(folder: Path | str, parts: Sequence[Part], wanted: int, gaps: Gaps) -> int:
    """Return the first position to read; LogError for deleted positions, unless gaps are skipped."""
    kept = parts[0].first
    if wanted >= kept:
        return wanted
    gone = f"the node has deleted positions {wanted} to {kept - 1} of {folder} before they were read"
    if gaps == "fail":
        raise LogError(f"{gone}: let it keep more (log.max_bytes, log.max_seconds), or set the option gaps to 'skip'")
    logger.warning("%s: they are skipped", gone)
    return kept
