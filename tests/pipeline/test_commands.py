"""`fieldfare pipeline check|explain|status` on a pipeline, and what they say of a wrong one."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tools.waiting import PATIENCE
from typer.testing import CliRunner

from fieldfare.cli import app
from fieldfare.cli.commands.demo import _declared
from fieldfare.node.pipeline_reports import PipelineReport
from fieldfare.pipeline.job import report
from fieldfare.pipeline.job.config import PipelineError, parse
from fieldfare.pipeline.job.plan import raw
from fieldfare_lab.node.servers import free_ports

PIPELINE = """
name = "quotes"
state = "state"
source = {kind = "files", path = "in"}
normalise = {fields = "symbol string, price double"}
match = {subscriptions = "wanted.csv"}
sink = [{kind = "lake", path = "lake"}]
"""


def _said(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["pipeline", *arguments])
    return done.exit_code, done.output


@pytest.mark.long
def test_the_program_starts_a_java_of_its_own_whose_messages_go_to_a_log(tmp_path: Path) -> None:
    """The documentation's examples run in the Java of the tests (`Jvm.lend`)."""
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"symbol": "A", "price": 1}\n')
    (tmp_path / "wanted.csv").write_text("id,filter\na,price < 3\n")
    command = [sys.executable, "-m", "fieldfare", "pipeline", "run", "pipeline.toml", "--once"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "1 events, 1 deliveries, 0 quarantined" in done.stdout
    assert "spark" not in done.stderr.lower()
    assert (tmp_path / "state" / "spark.log").exists()


def test_check_explain_and_status(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text(PIPELINE)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"symbol": "A", "price": 1}\n')
    (tmp_path / "wanted.csv").write_text("id,filter\na,prise < 3\nb,symbol = 'A'\n")
    code, said = _said("check", str(file))
    assert (code, said.splitlines()[-1]) == (0, "The pipeline can run.")
    assert "2 subscriptions (version 1), which look at prise, symbol" in said
    assert "filters look at prise, which is no declared field; did you mean price?" in said
    code, said = _said("explain", str(file), "--spark")
    assert code == 0
    assert "then        match: columns cross to the workers as Arrow, because Spark decodes the records" in said
    assert f"then        lake of deliveries at {tmp_path / 'lake'}: files: the workers write them" in said
    assert _said("status", str(file)) == (
        0,
        f"quotes has not processed a batch yet. Start it: fieldfare pipeline run {file}\n",
    )
    (tmp_path / "wanted.csv").write_text("id,filter\nbad,price <\n")
    code, said = _said("check", str(file))
    assert code == 2
    assert "subscription 'bad' (row 1): column 8: expected" in said
    file.write_text(PIPELINE.replace('kind = "lake"', 'kind = "lake", colour = "red"'))
    code, said = _said("check", str(file))
    assert code == 2
    assert "sink[0]: lake: there is no option `colour`; its options: path" in said


def test_explain_says_how_each_sink_gets_its_rows_and_why(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"symbol": "A", "price": 1}\n')
    (tmp_path / "wanted.csv").write_text("id,filter\nb,symbol = 'A'\n")
    before, _, _ = PIPELINE.partition("sink = [")
    sinks = ['path = "a"', 'path = "s3a://b/a"', 'path = "c"\nof = "events"']
    text = before + "".join(f'[[sink]]\nkind = "parquet"\n{sink}\n' for sink in sinks)
    (tmp_path / "pipeline.toml").write_text(text)
    _, said = _said("explain", str(tmp_path / "pipeline.toml"))
    ways = [line.rpartition("parquet of ")[2].partition(": ")[2] for line in said.splitlines() if "parquet of" in line]
    assert [way.partition(":")[0] for way in ways] == ["files", "rows", "rows"], said
    assert "because the folder is in an object store" in ways[1]
    assert "because it needs no matching" in ways[2]


def test_kafka_says_which_jar_it_needs(spark: SparkSession) -> None:
    source = 'source = {kind = "kafka", servers = "127.0.0.1:1", topic = "quotes"}\n'
    declared = parse(PIPELINE.replace('source = {kind = "files", path = "in"}\n', source))
    with pytest.raises(
        PipelineError, match=r"set spark\.jars\.packages to org\.apache\.spark:spark-sql-kafka-0-10_2\.13:4"
    ):
        raw(spark, declared)


def test_prometheus_reads_the_report(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    reporter = report.Reporter(parse(f"{PIPELINE}report = {{metrics = {port}}}"), tmp_path, None, lambda _: None)
    reporter._tell(PipelineReport("quotes", "running", 7, 100.0, events=12, deliveries=34))
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        text = answer.read().decode()
    assert 'fieldfare_pipeline_deliveries{pipeline="quotes"} 34.0' in text
    assert report.last(tmp_path) == PipelineReport("quotes", "running", 7, 100.0, events=12, deliveries=34)


def test_the_pipeline_of_the_demo_is_one() -> None:
    declared = parse(_declared(["http://127.0.0.1:7400", "http://127.0.0.1:7401"]))
    assert declared.source.options == {"path": "oslo"}
    assert declared.report.node == "http://127.0.0.1:7400"
