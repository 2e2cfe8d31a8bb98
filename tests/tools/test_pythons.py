"""Trying other Pythons: what is read from locks, interpreters and pytest, and what counts as a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tools.pythons import Outcome

from tools import pythons

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def test_constraints_are_pins_without_hashes_and_with_markers() -> None:
    lock = "lark==1.2 \\\n    --hash=sha256:00\ncolorama==0.4 ; sys_platform == 'win32' \\\n    --hash=sha256:01\n"
    assert pythons.constraints(lock) == "lark==1.2\ncolorama==0.4 ; sys_platform == 'win32'\n"


def test_every_pin_of_the_lock_is_a_constraint() -> None:
    lock = (pythons.ROOT / "locks" / "dev.txt").read_text(encoding="utf-8")
    lines = pythons.constraints(lock).splitlines()
    assert len(lines) == lock.count("==") - sum(line.partition(" ;")[2].count("==") for line in lines)
    assert not [line for line in lines if "hash" in line or "\\" in line]


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("....\n3773 passed in 201.10s (0:03:21)\n", "3773 passed"),
        ("== short ==\n=== 1 failed, 12 passed, 3 skipped in 2.31s ===\n", "1 failed, 12 passed, 3 skipped"),
        ("ImportError: no\n  module", "ImportError: no module"),
    ],
)
def test_summary(output: str, expected: str) -> None:
    assert pythons.summary(output) == expected


def test_an_interpreter_is_one_that_runs_and_is_of_the_version(tmp_path: Path) -> None:
    assert pythons.is_version(sys.executable, HERE)
    assert not pythons.is_version(sys.executable, "2.7")
    assert not pythons.is_version(str(tmp_path / "missing"), HERE)
    shim = tmp_path / "python"
    shim.write_text("#!/bin/sh\necho not installed\nexit 127\n")
    shim.chmod(0o755)
    assert not pythons.is_version(str(shim), HERE)


def test_a_version_of_which_there_is_none_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(version: str, scratch: Path) -> str:
        raise subprocess.CalledProcessError(2, "uv", stderr=f"error: no download found\nfor {version}")

    monkeypatch.setattr(pythons, "_fetched", fail)
    outcome = pythons.tried("9.9", [], tmp_path)
    assert (outcome.status, outcome.detail) == (
        "not to be had",
        "not on PATH, and uv says: error: no download found for 9.9",
    )


def test_only_a_failure_fails_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []
    status = {"3.11": "passed", "3.12": "not to be had", "3.13": "failed"}

    def tried(version: str, tests: list[str], scratch: Path) -> Outcome:
        asked.append((version, tuple(tests)))
        return Outcome(version, status[version], "because")

    monkeypatch.setattr(pythons, "tried", tried)
    assert pythons.main(["3.11", "3.12", "--", "tests/events"]) == 0
    assert pythons.main([]) == 1
    assert asked == [
        ("3.11", ("tests/events",)),
        ("3.12", ("tests/events",)),
        *((version, pythons.TESTS) for version in pythons.VERSIONS),
    ]
    assert "3.12   not to be had" in capsys.readouterr().out
