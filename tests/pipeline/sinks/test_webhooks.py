"""The kind `webhooks`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.sinks.formats.test_webhooks import Request, receiver
from tests.pipeline.sinks.suite import FIRST, WRITER, SinkSuite, rows

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.sinks import SinkSettings, make
from fieldfare.pipeline.sinks.interface import Scalar


class TestWebhooks(SinkSuite):
    """A receiver gets a batch that comes again once more, and tells by `ce-id` and `ce-source`."""

    kind = "webhooks"
    taken: list[Request]

    @pytest.fixture
    def place(self, tmp_path: Path) -> Iterator[Path]:
        with receiver() as (url, self.taken):
            (tmp_path / "url").write_text(url)
            yield tmp_path

    def settings(self, place: Path) -> SinkSettings:
        return SinkSettings(self.kind, self.table, {"url": (place / "url").read_text() + "/ok"})

    def contents(self, place: Path) -> list[str]:
        return sorted(id for id, _ in {(headers["ce-id"], headers["ce-source"]) for _, headers, _ in self.taken})

    @pytest.mark.long
    def test_a_batch_that_comes_again_has_the_same_dead_letters(self, spark: SparkSession, place: Path) -> None:
        dead = place / "dead"
        settings = self.settings(place)
        options: dict[str, Scalar] = {
            "url": str(settings.options["url"]).replace("/ok", "/bad"),
            "dead_letters": str(dead),
        }
        for _ in range(2):
            make(SinkSettings(self.kind, self.table, options)).write(rows(spark, FIRST), Batch(WRITER, 0))
        assert sorted(json.loads(row.event)["id"] for row in spark.read.json(str(dead)).collect()) == FIRST
