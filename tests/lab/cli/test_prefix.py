"""`fieldfare lab prefix`: what it prints and writes. What the experiments find is tested in `lab`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fieldfare.cli import app
from fieldfare_lab.cli import lab
from fieldfare_lab.prefix.experiments import EXPERIMENTS
from fieldfare_lab.results import Settings


@pytest.fixture(autouse=True)
def _tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first impression takes seconds; here even less is enough."""
    monkeypatch.setattr(
        lab, "_settings", lambda replications, seed, *, quick: Settings(1, seed, 0.02 if quick else 0.03)
    )


def test_it_shows_and_writes_what_was_asked_for(tmp_path: Path) -> None:
    page, data = tmp_path / "page.md", tmp_path / "data.json"
    asked = ["lab", "prefix", "--quick", "--only", "X5,X4", "--json", str(data), "--report", str(page)]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert [result["name"] for result in json.loads(data.read_bytes())] == ["X5", "X4"]
    text = page.read_text()
    assert text.startswith("Made by `fieldfare lab prefix --only X5,X4 --quick` on")
    for heading in ("X5: The order of attributes", "X4: A query log"):
        assert f"## {heading}" in text
    assert done.output.index("X5") < done.output.index("X4")


def test_an_unknown_experiment_is_said_with_those_there_are() -> None:
    done = CliRunner().invoke(app, ["lab", "prefix", "--only", "X99"])
    assert done.exit_code == 2
    assert f"there are {', '.join(EXPERIMENTS)}" in " ".join(done.output.split())


def test_the_help_names_all_experiments() -> None:
    text = CliRunner().invoke(app, ["lab", "prefix", "--help"]).output
    assert all(name in text for name in EXPERIMENTS)
