"""Every program in examples/ runs, and has something to say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.waiting import PATIENCE

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))
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


@pytest.mark.long  # starts Spark
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_notebook(notebook: Path, tmp_path: Path) -> None:
    """Every cell runs, one after another, in the namespace of those before; what a cell ends with is shown, not used."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    program = tmp_path / "cells.py"
    program.write_text("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"), "utf-8")
    done = subprocess.run(
        [sys.executable, program],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
        timeout=9 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "quartiles of the volume" in done.stdout
    assert not any(cell.get("outputs") for cell in cells)
