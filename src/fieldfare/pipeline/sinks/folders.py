"""The kind `subscribers`: a folder for each subscriber, with Parquet files of that subscriber's rows alone.

A batch gives a subscriber one file, named after the batch. All rows of a subscriber are in the same task, which writes
the subscribers one after the other and so has one file open at a time, however many subscribers there are. A batch that
runs again replaces its files. Deliveries by owner are written by the workers (see `formats.subscriber_files`).
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.folders import folder, folder_name, move, partitions, remove
from fieldfare.pipeline.match.deliveries import unwritable
from fieldfare.pipeline.match.operator import Matched
from fieldfare.pipeline.options import OptionError, Options
from fieldfare.pipeline.sinks.formats import subscriber_files
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

    def write_matched(self, matched: Matched, batch: Batch) -> None:
        """Let the workers write the file of each subscriber."""
        if self.rows_because(matched) is not None:
            self.write(matched.rows(), batch)
            return
        place = Path(self.path).absolute()
        with _aside(place) as aside:
            subscriber_files.write_matched(matched, place, aside, _file(f"{batch.writer[:8]}-", batch.number))

    def rows_because(self, matched: Matched) -> str | None:
        """Return why Spark must write the rows; None if the workers can."""
        if self.by != "owner":
            return f"the folders are those of the column {self.by}, not of the owners of subscriptions"
        wrong = unwritable(matched.source.kept)
        return None if wrong is None else f"only Spark can write the column {wrong}"


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
    with _aside(place) as aside:
        placed = deliveries.withColumn(_OWNER, folder(F.col(owner).cast("string"))).repartition(_OWNER)
        placed.write.option("maxRecordsPerFile", 0).partitionBy(_OWNER).parquet(str(aside))
        files = list(partitions(aside))
        for values, file in files:
            move(file, place / values[_OWNER] / _file(writer, batch))
        return len(files)


def _file(writer: str, batch: int) -> str:
    return f"{writer}{batch:020}.parquet"


@contextlib.contextmanager
def _aside(place: Path) -> Iterator[Path]:
    """Provide a name for a folder of files that do not count yet, and remove the folder afterwards."""
    aside = place / _STAGING / uuid.uuid4().hex
    try:
        yield aside
    finally:
        remove(aside)
        with contextlib.suppress(OSError):  # somebody else is writing there, or nobody has
            aside.parent.rmdir()


def folder_of(path: str | Path, owner: str | None) -> Path:
    """Return the folder with the deliveries of a subscriber."""
    return Path(path) / folder_name(owner)
