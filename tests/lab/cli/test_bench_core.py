"""`fieldfare bench core`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fieldfare.cli import app

SMALL = ("--events", "50", "--rounds", "1")


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["bench", "core", *arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("option", ["--memory", "--linked"])
def test_a_core_is_measured(tmp_path: Path, option: str) -> None:
    file = tmp_path / "out.json"
    code, output = run(*SMALL, "--shape", "of 100", "--batches", "1,20", option, "--json", str(file))
    assert code == 0, output
    found = json.loads(file.read_text())
    assert [(one["shape"], one["batch"], one["receivers"]) for one in found] == [
        ("one of 100", 1, 1),
        ("one of 100", 20, 1),
        ("all of 100", 1, 100),
        ("all of 100", 20, 100),
        ("nested, one of 100", 1, 1),
        ("nested, one of 100", 20, 1),
        ("nested JSON, one of 100", 1, 1),
        ("nested JSON, one of 100", 20, 1),
    ]
    assert all(spent > 0 for one in found for stage, spent in one["stages"].items() if stage in ("step", "fetch"))


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--batches", "many"), "numbers with commas"),
        (("--batches", "0"), "at least one event"),
        (("--shape", "triangle"), "there is no shape 'triangle'"),
    ],
)
def test_wrong_options_are_refused(arguments: tuple[str, ...], complaint: str) -> None:
    code, output = run(*arguments)
    assert code != 0
    assert complaint in " ".join(output.split())
