"""The pipeline through Spark Connect, with a server on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipeline.connect_calls import EXPECTED

import fieldfare.pipeline

pytestmark = pytest.mark.needs("Spark Connect")


def test_all_public_calls_are_tried() -> None:
    tried = {name.partition(",")[0] for name in EXPECTED}
    assert set(fieldfare.pipeline.__all__) - tried == {"Subscription", "SubscriptionError", "spark_session"}


@pytest.mark.long
def test_every_call_works_or_is_refused_by_name(tmp_path: Path) -> None:
    settings = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "FIELDFARE_KERNELS": "numpy",
    }
    command = [sys.executable, "-m", "tests.pipeline.connect_calls", "local[2]", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-3000:]
    found = json.loads(lines[0])
    found["pipeline"] = found["pipeline"].partition(",")[0]
    assert found == EXPECTED
