"""The kind `parquet`: a folder of Parquet files, with a subfolder for each batch.

The subfolder is named after the batch, and a batch that comes again replaces its subfolder.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.options import Options
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
        rows.write.mode("overwrite").parquet(f"{self.path}/batch={batch.writer[:8]}-{batch.number}")


def make(settings: SinkSettings) -> ParquetSink:
    """Make a sink that writes Parquet files."""
    return ParquetSink(settings.read(ParquetOptions).path)
