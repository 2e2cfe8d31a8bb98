"""Figures of a pipeline through Spark's own channels: observed metrics, a listener, and descriptions of jobs.

The counts of a micro-batch are observed metrics named `fieldfare`, in `progress.observedMetrics` for every
`StreamingQueryListener` and in the node `CollectMetrics` in the SQL tab of Spark's UI. The jobs tab names the batch and
the sink of a job. A listener writes each progress of the query to `progress.json` beside the report, for `fieldfare
pipeline top`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from fieldfare.pipeline.job.plan import measures

NAME: Final = "fieldfare"
"""name of the observed metrics"""
FILE: Final = "progress.json"


class SourceProgress(msgspec.Struct, frozen=True):
    """A source in a progress; Kafka's metrics tell how far the query is behind."""

    description: str = ""
    metrics: dict[str, str] | None = None


class Progress(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a progress of Spark's which `fieldfare pipeline top` shows."""

    batch_id: int
    timestamp: str
    num_input_rows: int = 0
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    duration_ms: dict[str, int] = {}
    sources: list[SourceProgress] = []
    observed_metrics: dict[str, dict[str, int | None]] = {}


def last(state: Path) -> Progress | None:
    """Read the last progress of a pipeline; None without a readable file."""
    try:
        return msgspec.json.decode((state / FILE).read_bytes(), type=Progress, strict=False)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def observed(records: DataFrame) -> DataFrame:
    """Let Spark count a stream while it runs, for listeners and the UI."""
    counts = measures(records)
    return records.observe(NAME, counts[0], *counts[1:])


@contextmanager
def listening(spark: SparkSession, name: str, state: Path) -> Iterator[None]:
    """Write the progress of the query with this name to the folder of the state."""
    listener = _Listener(name, state)
    spark.streams.addListener(listener)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)


class _Listener(StreamingQueryListener):
    def __init__(self, name: str, state: Path) -> None:
        self._name, self._state = name, state

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark's name
        """Wait for the first micro-batch."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Replace the file by the progress of a micro-batch."""
        if event.progress.name != self._name:
            return
        draft = self._state / f".{FILE}"
        draft.write_text(event.progress.json, encoding="utf-8")
        draft.replace(self._state / FILE)

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Keep the file: the last batch is still the last."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Keep the file for readers after the end."""


def describe(spark: SparkSession, text: str | None) -> None:
    """Name the jobs of this thread in Spark's UI."""
    spark.sparkContext.setLocalProperty("spark.job.description", text)  # type: ignore[arg-type]  # None ends the name
