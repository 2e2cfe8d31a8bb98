"""Figures through Spark's own channels, and the command that shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from tools.waiting import wait_until
from typer.testing import CliRunner

from fieldfare.cli import app
from fieldfare.pipeline.job import progress
from fieldfare.pipeline.job.config import read
from fieldfare.pipeline.job.run import ready, run

FILE = """
name = "quotes"
state = "state"
source = {kind = "files", path = "in"}
normalise = {fields = "x long"}
match = {subscriptions = "subscriptions.csv"}
sink = [{kind = "parquet", path = "out"}]
"""


class Heard(StreamingQueryListener):
    def __init__(self) -> None:
        self.counts: list[Any] = []

    def onQueryStarted(self, event: Any) -> None: ...  # noqa: N802 - Spark\'s name

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - Spark\'s name
        if progress.NAME in event.progress.observedMetrics:
            self.counts.append(event.progress.observedMetrics[progress.NAME].asDict())

    def onQueryIdle(self, event: Any) -> None: ...  # noqa: N802 - Spark\'s name

    def onQueryTerminated(self, event: Any) -> None: ...  # noqa: N802 - Spark\'s name


def test_counts_are_heard_by_listeners_and_shown_by_top(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"x": 1}\n{"x": 5}\n{no\n')
    (tmp_path / "subscriptions.csv").write_text("id,filter\na,x > 2\nb,x > 0\n")
    file = tmp_path / "quotes.toml"
    file.write_text(FILE)
    before = CliRunner().invoke(app, ["pipeline", "top", str(file), "--count", "1"])
    assert "new" in before.output
    heard = Heard()
    spark.streams.addListener(heard)
    try:
        with ready(read(file)) as plan:
            run(plan, once=True)
            wait_until(lambda: heard.counts and progress.last(plan.state))
    finally:
        spark.streams.removeListener(heard)
    expected = {"events": 2, "late": 0, "quarantined": 1, "deliveries": 3, "snapshot": 1}
    assert heard.counts[0] == expected
    shown = CliRunner().invoke(app, ["pipeline", "top", str(file), "--count", "1"])
    assert shown.exit_code == 0
    line = next(line.split() for line in shown.output.splitlines() if line.startswith("quotes"))
    assert (line[1:4], line[6:8]) == (["ended", "0", "3"], ["3", "1"])
    assert not (tmp_path / "state" / f".{progress.FILE}").exists()
