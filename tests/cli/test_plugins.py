"""Commands of other distributions, installed and not."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from fieldfare.cli import plugins
from fieldfare.cli.plugins import DISTRIBUTIONS, GROUP, Commands

greeting = typer.Typer()


@greeting.command("hello")
def hello() -> None:
    """Greet."""
    typer.echo("hello")


@greeting.command("bye")
def bye() -> None:
    """Take leave."""


def installed(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> typer.Typer:
    def entry_points(*, group: str, name: str | None = None) -> list[EntryPoint]:
        return [point for point in points if point.group == group and name in (None, point.name)]

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    app = typer.Typer(cls=Commands, rich_markup_mode=None)
    app.command("own")(hello)
    app.callback()(lambda: None)
    return app


def test_a_plug_in_adds_its_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(point: EntryPoint) -> Any:
        loaded.append(point.name)
        return greeting

    monkeypatch.setattr(EntryPoint, "load", load)
    app = installed(monkeypatch, EntryPoint("greet", "tests:greeting", GROUP))
    assert CliRunner().invoke(app, ["own"]).output == "hello\n"
    assert loaded == []  # only those who ask for it import it
    assert CliRunner().invoke(app, ["greet", "hello"]).output == "hello\n"
    assert "greet" in CliRunner().invoke(app, ["--help"]).output


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("arguments", [[], ["tables", "--quick"], ["--help"]])
def test_a_command_that_is_not_installed_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, name: str, arguments: list[str]
) -> None:
    result = CliRunner().invoke(installed(monkeypatch), [name, *arguments])
    assert (result.exit_code, result.output) == (
        2,
        f"error: fieldfare {name} is not installed: pip install fieldfare-lab\n",
    )
