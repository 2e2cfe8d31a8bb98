"""A test that hangs fails alone: its worker is ended, another one goes on, and meets nothing that was left half done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUITE = """
import threading
import pytest

left_half_done = []

def test_alone():
    pass

@pytest.mark.xdist_group("together")
def test_before():
    pass

@pytest.mark.xdist_group("together")
@pytest.mark.timeout(8)
def test_hangs():
    left_half_done.append(1)
    threading.Event().wait()

@pytest.mark.xdist_group("together")
@pytest.mark.parametrize("number", range(3))
def test_after(number):
    assert not left_half_done

@pytest.mark.timeout(8)
def test_hangs_at_the_end():
    threading.Event().wait()
"""


def test_a_test_that_hangs_takes_no_other_with_it(tmp_path: Path) -> None:
    """The settings and the scheduler are ours, the suite is not."""
    (tmp_path / "test_suite.py").write_text(SUITE)
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_xdist_make_scheduler")
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    command += ["-o", "faulthandler_timeout=0.5", "-o", f"pythonpath={ROOT}", "-p", "no:cacheprovider"]
    for workers in ("1", "2"):
        done = subprocess.run(
            [*command, "-n", workers, "--dist", "loadgroup", "test_suite.py"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "2 failed, 5 passed" in done.stdout, done.stdout + done.stderr
        assert "crashed while running 'test_suite.py::test_hangs" in done.stdout
        assert "in test_hangs\n" in done.stderr  # one sees where it hung
