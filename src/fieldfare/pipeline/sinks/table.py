"""The kind `lake`: a Delta table by type and day, in a folder or a bucket (see `lake`).

A commit names its batch, and the table accepts no batch twice. Deliveries are written by the workers that make them
(see `formats.table_deliveries`), unless a column has a type of Spark's alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.table import write_table
from fieldfare.pipeline.match.operator import Matched
from fieldfare.pipeline.options import Options
from fieldfare.pipeline.sinks.formats.table_deliveries import add_deliveries, rows_because
from fieldfare.pipeline.sinks.interface import Sink, SinkSettings


class TableOptions(Options, frozen=True):
    """The options of the kind `lake`: the place of a Delta table."""

    path: str
    """the folder or URL of the table"""


@dataclass(frozen=True)
class TableSink(Sink):
    """A table; rows of the quarantine, without type and time, are sorted by the day of their arrival."""

    path: str
    quarantine: bool

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Add the rows in one commit, unless the table has the batch already."""
        if self.quarantine:
            write_table(rows, self.path, batch=batch, kind=F.lit("quarantine"), time=F.col("at"))
        else:
            write_table(rows, self.path, batch=batch)

    def write_matched(self, matched: Matched, batch: Batch) -> None:
        """Let the workers write the deliveries, and add their files in one commit."""
        if self.rows_because(matched) is None:
            add_deliveries(matched, self.path, batch)
        else:
            self.write(matched.rows(), batch)

    def rows_because(self, matched: Matched) -> str | None:
        """Return why Spark must write the rows; None if the workers can."""
        return rows_because(matched)


def make(settings: SinkSettings) -> TableSink:
    """Make a sink that adds to a table."""
    return TableSink(settings.read(TableOptions).path, settings.table == "quarantine")
