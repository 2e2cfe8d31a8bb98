"""The promises of a sink, as tests: a class of tests for each sink inherits them, and says how to read the sink.

class TestMine(SinkSuite):
    kind = "mine:make"
    options = {"path": "out"}

    def contents(self, place: Path) -> list[str]:
        return sorted(...)                  # the ids of the events in the sink, an event that is there twice twice
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest
from pyspark.sql import DataFrame, SparkSession

from fieldfare.pipeline import normalise
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.options import OptionError
from fieldfare.pipeline.sinks import Sink, SinkSettings, make
from fieldfare.pipeline.sinks.interface import Scalar, Table

FIRST, SECOND, OTHERS = ["a", "b", "c"], ["d", "e"], ["f"]
WRITER = "11111111-aaaa:deliveries"


def rows(spark: SparkSession, ids: list[str], *, partitions: int = 1) -> DataFrame:
    """Return deliveries of events with these ids, in so many partitions."""
    texts = [(json.dumps({"id": id, "source": "/test", "n": number}),) for number, id in enumerate(ids)]
    raw = spark.createDataFrame(texts, "event string").repartition(partitions)
    events = normalise(raw, "n long").events
    return events.selectExpr("*", "'s1' AS subscription", "'ana' AS owner", "1 AS snapshot")


class SinkSuite(ABC):
    """The tests that every sink passes."""

    kind: ClassVar[str]
    table: ClassVar[Table] = "deliveries"
    options: ClassVar[Mapping[str, Scalar]] = {}

    @abstractmethod
    def contents(self, place: Path) -> list[str]:
        """Return the sorted ids of the events in the sink; an event that is there twice is twice in the list."""

    def settings(self, place: Path) -> SinkSettings:
        """Return the settings of a sink in a folder; a sink that is no folder overrides this."""
        return SinkSettings(self.kind, self.table, {"path": str(place / "out"), **self.options})

    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Path]:
        """Provide the folder of a test; a sink that needs a server starts the server here."""
        yield tmp_path  # noqa: PT022 - of this form, so that others can stop what they started

    @contextmanager
    def made(self, place: Path) -> Iterator[Sink]:
        """Make the sink, as a pipeline does at its start, and close the sink afterwards."""
        sink = make(self.settings(place))
        try:
            yield sink
        finally:
            sink.close()

    def test_each_batch_is_there_once(self, spark: SparkSession, place: Path) -> None:
        first = rows(spark, FIRST)
        with self.made(place) as sink:
            sink.write(first, Batch(WRITER, 0))
            sink.write(first, Batch(WRITER, 0))
        with self.made(place) as sink:  # after a crash: a new process, other partitions, another order
            sink.write(rows(spark, FIRST[::-1], partitions=2), Batch(WRITER, 0))
            sink.write(first.limit(0), Batch(WRITER, 1))
            sink.write(rows(spark, SECOND, partitions=2), Batch(WRITER, 2))
            sink.write(rows(spark, OTHERS), Batch("22222222-bbbb:deliveries", 0))  # has numbers of its own
        assert self.contents(place) == [*FIRST, *SECOND, *OTHERS]

    def test_an_unknown_option_is_named(self, tmp_path: Path) -> None:
        settings = SinkSettings(self.kind, self.table, {"pth": str(tmp_path)})
        with pytest.raises(OptionError, match="pth"):
            make(settings)
