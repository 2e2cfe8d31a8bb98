"""Sessions that the user has made, with workers that may know nothing of Fieldfare."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipeline.cheap import CHEAP_JAVA, CHEAP_SQL

DRIVER = """
import os, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master(sys.argv[1]).config("spark.ui.enabled", "false")
for setting in sys.argv[2:]:
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()
from fieldfare.pipeline import match_events
events = spark.createDataFrame([(1, 5), (2, 50)], "n int, x int")
wanted = spark.createDataFrame([("a", "x > 10")], "id string, filter string")
try:
    print("FOUND", [row.n for row in match_events(events, wanted).collect()])
except RuntimeError as error:
    print("ERROR", str(error))
"""


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A Python that is first on the PATH and has no Fieldfare, as outside of a virtual environment."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    return folder


def drive(stranger: Path, *arguments: str, python: str = "") -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK")}
    environment |= {"PATH": f"{stranger}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"JAVA_TOOL_OPTIONS": CHEAP_JAVA, "FIELDFARE_KERNELS": "numpy"}
    environment |= {"PYSPARK_PYTHON": python} if python else {}
    cheap = [f"{key}={value}" for key, value in CHEAP_SQL.items()]
    command = [sys.executable, "-c", DRIVER, *arguments, *cheap]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=stranger)
    said = [line for line in done.stdout.splitlines() if line.startswith(("FOUND", "ERROR"))]
    assert said, done.stderr[-2000:]
    return said[0]


@pytest.mark.long
def test_on_one_machine_workers_take_the_python_of_the_driver(stranger: Path) -> None:
    assert drive(stranger, "local[1]") == "FOUND [2]"


@pytest.mark.long
def test_a_python_without_fieldfare_is_named_with_the_setting(stranger: Path) -> None:
    said = drive(stranger, "local[1]", python=str(stranger / "python3"))
    assert said.startswith("ERROR the Python of Spark's workers, ")
    assert "has no fieldfare: set the variable PYSPARK_PYTHON" in said
