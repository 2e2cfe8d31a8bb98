"""Every program in examples/ runs, and has something to say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.waiting import PATIENCE

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
BRIEFLY = {"fleet.py": ["--seconds", "2", "--taxis", "3"]}


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example(example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", example, *BRIEFLY.get(example.name, [])],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONUTF8": "1"},
        timeout=3 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
