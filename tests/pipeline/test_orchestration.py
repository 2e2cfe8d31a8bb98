"""The pages on other programs that run pipelines: their files and commands, as they stand there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fieldfare.pipeline.lake.table import write_table
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription

pytestmark = pytest.mark.long
PAGES = Path(__file__).parents[2] / "docs" / "how-to"
FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.+)$", re.MULTILINE)


class Project:
    """The files of a page in a folder, and the commands of the page."""

    def __init__(self, page: str, folder: Path) -> None:
        text = (PAGES / page).read_text("utf-8")
        self.folder = folder
        for name, body in FILE.findall(text):
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body.replace("$PWD", str(folder)), "utf-8")
        self.commands = COMMAND.findall(text)
        assert self.commands

    def run(self, first: int = 0, **settings: str) -> str:
        """Run the commands of the page from the first on; their output."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        environment = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "FIELDFARE_KERNELS": "numpy"}
        environment["JAVA_TOOL_OPTIONS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
        shown = ""
        for command in self.commands[first:]:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env={**os.environ, **environment, "PATH": path, "MARKET": str(self.folder), **settings},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            shown += done.stdout
            assert done.returncode == 0, f"{command}\n{shown[-5000:]}"
        return shown


@pytest.mark.needs("Airflow")
def test_airflow_runs_a_pipeline_again_and_again(tmp_path: Path) -> None:
    project = Project("run-with-airflow.md", tmp_path)
    settings = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    for first, trades, deliveries in ((0, 2, 2), (1, 3, 4)):
        shown = project.run(first, **settings)
        report = json.loads((tmp_path / "market-state" / "report.json").read_text("utf-8"))
        assert (report["events"], report["deliveries"]) == (trades, deliveries), shown
        (tmp_path / "trades" / "more.jsonl").write_text('{"id": "3", "symbol": "IBM", "price": 90}\n')


@pytest.mark.needs("dbt")
def test_dbt_matches_the_events_of_a_lake(tmp_path: Path) -> None:
    import duckdb  # type: ignore[import-not-found]  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from fieldfare.pipeline import normalise, spark_session  # noqa: PLC0415

    spark: SparkSession = spark_session("local[1]")
    texts = ['{"id": "1", "symbol": "IBM", "price": 119}', '{"id": "2", "symbol": "SAP", "price": 180}']
    raw = spark.createDataFrame([(text,) for text in texts], "event string")
    write_table(normalise(raw, "symbol string, price double").events, tmp_path / "lake")
    spark.stop()
    Project("use-with-dbt.md", tmp_path).run()
    with duckdb.connect(str(tmp_path / "market.duckdb")) as database:
        found = database.sql("SELECT * FROM by_owner ORDER BY owner").fetchall()
        pairs = database.sql("SELECT id, subscription FROM deliveries ORDER BY ALL").fetchall()
    assert found == [("ana", 3, 2), ("ben", 1, 1)]
    assert pairs == [("1", "all"), ("1", "cheap"), ("1", "ibm"), ("2", "all")]


@pytest.mark.needs("Spark Connect")
def test_a_declarative_pipeline_of_spark(tmp_path: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415

    project = Project("declarative-pipelines.md", tmp_path)
    place = tmp_path / "subscriptions"
    catalogue.write_version(place, [Subscription("cheap", "price < 120.5", "ana")])
    project.run(SPARK_TESTING="1")  # the server of Spark Connect then takes any free port
    catalogue.amend(place, [Subscription("all", "EXISTS symbol", "ben")])
    (tmp_path / "trades" / "more.json").write_text('{"symbol": "KODA", "price": 90}\n')
    project.run(SPARK_TESTING="1")

    def rows(name: str) -> list[tuple[object, ...]]:
        table = pq.read_table(tmp_path / "warehouse" / name)
        return sorted(tuple(row[key] for key in ("symbol", "subscription")) for row in table.to_pylist())

    assert rows("deliveries") == [("IBM", "cheap"), ("KODA", "all"), ("KODA", "cheap")], "new trades only"
    assert rows("past") == [("IBM", "all"), ("IBM", "cheap"), ("KODA", "all"), ("KODA", "cheap"), ("SAP", "all")]
    counted = pq.read_table(tmp_path / "warehouse" / "by_owner").to_pylist()
    assert {row["owner"]: row["deliveries"] for row in counted} == {"ana": 2, "ben": 1}
