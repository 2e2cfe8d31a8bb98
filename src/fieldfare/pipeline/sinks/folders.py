"""The kind `subscribers`: a folder for each subscriber, with Parquet files of that subscriber's rows alone.

A batch gives a subscriber one file, named after the batch. All rows of a subscriber are in the same task, which writes
the subscribers one after the other and so has one file open at a time, however many subscribers there are. A batch that
runs again replaces its files.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.folders import folder, folder_name, move, partitions, remove
from fieldfare.pipeline.options import OptionError, Options
from fieldfare.pipeline.sinks.interface import Sink, SinkSettings

_OWNER = "_owner"
_STAGING = "_staging"


class FolderOptions(Options, frozen=True):
    """The options of folders of subscribers."""

    path: str
    """the folder in which each subscriber has a folder"""
    by: str = "owner"
    """the column that names the subscriber of a row"""


@dataclass(frozen=True)
class FolderSink(Sink):
    """A folder of Parquet files for each subscriber."""

    path: str
    by: str

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Write a file for each subscriber that has rows in the batch."""
        write_by_subscriber(rows, self.path, batch=batch.number, writer=f"{batch.writer[:8]}-", owner=self.by)


def make(settings: SinkSettings) -> FolderSink:
    """Make a sink with a folder for each subscriber; only deliveries have subscribers."""
    if settings.table != "deliveries":
        raise OptionError("only deliveries have subscribers")
    given = settings.read(FolderOptions)
    return FolderSink(given.path, given.by)


def write_by_subscriber(
    deliveries: DataFrame, path: str | Path, *, batch: int = 0, writer: str = "", owner: str = "owner"
) -> int:
    """Write the deliveries of a batch, and return the number of subscribers with deliveries.

    Args:
        deliveries: rows with a column that names the subscriber.
        path: the folder in which each subscriber has a folder, see `folder_of`.
        batch: the number of the batch; of the micro-batch in a stream.
        writer: a prefix of the files' names, to tell several writers apart.
        owner: the column that names the subscriber.
    """
    place = Path(path)
    aside = place / _STAGING / uuid.uuid4().hex
    try:
        placed = deliveries.withColumn(_OWNER, folder(F.col(owner).cast("string"))).repartition(_OWNER)
        placed.write.option("maxRecordsPerFile", 0).partitionBy(_OWNER).parquet(str(aside))
        files = list(partitions(aside))
        for values, file in files:
            move(file, place / values[_OWNER] / f"{writer}{batch:020}.parquet")
        return len(files)
    finally:
        remove(aside)
        with contextlib.suppress(OSError):  # somebody else is writing there
            aside.parent.rmdir()


def folder_of(path: str | Path, owner: str | None) -> Path:
    """Return the folder with the deliveries of a subscriber."""
    return Path(path) / folder_name(owner)
