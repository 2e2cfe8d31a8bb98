"""`fieldfare bench route`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fieldfare.cli import app

SMALL = ("--events", "50", "--changes", "10", "--rounds", "1")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["bench", "route", *arguments])
    return result.exit_code, result.output


def test_a_broker_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    code, output = run(*SMALL, "--filters", "20,40", "--json", str(file))
    assert code == 0, output
    assert "linked_over_unlinked" in output
    found = json.loads(file.read_text())
    assert found["filters"] == 40
    assert found["linked_over_unlinked"] > 0
    assert found["subscribe_us"] > 0
    assert found["memory_bytes"] > 0
    assert [size["filters"] for size in found["sizes"]] == [20, 40]
    assert found["sizes"][0]["deliveries_an_event"] <= found["deliveries_an_event"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--filters", "many"), "numbers with commas"),
        (("--filters", "0"), "at least one filter"),
        (("--strategy", "guess"), "there is no strategy 'guess'"),
        (("--workload", "none", *SMALL), "there is no workload 'none'"),
    ],
)
def test_wrong_options_are_refused(arguments: tuple[str, ...], complaint: str) -> None:
    code, output = run(*arguments)
    assert code != 0
    assert complaint in " ".join(output.split())
