"""Commands of other distributions, installed and not."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
import typer
from typer.testing import CliRunner

from fieldfare.cli.plugins import DISTRIBUTIONS, GROUP, add_plugins

greeting = typer.Typer()


@greeting.command("hello")
def hello() -> None:
    """Greet."""
    typer.echo("hello")


@greeting.command("bye")
def bye() -> None:
    """Take leave."""


def test_a_plug_in_adds_its_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EntryPoint, "load", lambda _: greeting)
    app = typer.Typer()
    add_plugins(app, [EntryPoint("greet", "tests:greeting", GROUP)])
    assert CliRunner().invoke(app, ["greet", "hello"]).output == "hello\n"


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("arguments", [[], ["tables", "--quick"], ["--help"]])
def test_a_command_that_is_not_installed_says_what_to_install(name: str, arguments: list[str]) -> None:
    app = typer.Typer()
    add_plugins(app, [])
    result = CliRunner().invoke(app, [name, *arguments])
    assert (result.exit_code, result.output) == (
        2,
        f"error: fieldfare {name} is not installed: pip install fieldfare-lab\n",
    )
