"""The kind `parquet`: a folder of Parquet files, with a subfolder for each batch.

The subfolder is named after the batch, and appears in one step, whole. Deliveries are written by the workers that
make them (see `match.deliveries`), unless the folder is in an object store or a column has a type of Spark's alone.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.match.deliveries import committed, stage, unwritable
from fieldfare.pipeline.match.operator import Matched, result_columns
from fieldfare.pipeline.options import Options
from fieldfare.pipeline.parts import STAGING, discard, is_published
from fieldfare.pipeline.sinks.interface import Sink, SinkSettings


class ParquetOptions(Options, frozen=True):
    """The options of a folder of Parquet files."""

    path: str
    """the folder, which may be anywhere that Spark writes to, such as `s3a://bucket/events`"""


@dataclass(frozen=True)
class ParquetSink(Sink):
    """A folder of Parquet files that any tool reads, without a log of commits."""

    path: str

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Write the subfolder of a batch; eight characters of the writer tell two states of a pipeline apart."""
        rows.write.mode("overwrite").parquet(self._folder(batch))

    def write_matched(self, matched: Matched, batch: Batch) -> None:
        """Let the workers write the deliveries; a batch that is there as a whole is left as it is."""
        if self.rows_because(matched) is not None:
            self.write(matched.rows(), batch)
            return
        target = Path(self._folder(batch)).absolute()
        if is_published(target):
            return
        staging = target.parent / STAGING / uuid.uuid4().hex
        try:
            columns = result_columns(matched.source.kept, matched.id, "rows")
            committed(staging, stage(matched.source, staging), target, columns)
        finally:
            discard(staging)

    def rows_because(self, matched: Matched) -> str | None:
        """Return why Spark must write the rows; None if the workers can."""
        if "://" in self.path:
            return "the folder is in an object store"
        wrong = unwritable(matched.source.kept)
        return None if wrong is None else f"only Spark can write the column {wrong}"

    def _folder(self, batch: Batch) -> str:
        return f"{self.path}/batch={batch.writer[:8]}-{batch.number}"


def make(settings: SinkSettings) -> ParquetSink:
    """Make a sink that writes Parquet files."""
    return ParquetSink(settings.read(ParquetOptions).path)
