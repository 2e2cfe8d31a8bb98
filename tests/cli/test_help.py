"""The help teaches: every example in it is run."""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from _pytest.mark import ParameterSet
from tests.commands import shell
from typer.core import TyperGroup
from typer.testing import CliRunner

from fieldfare.cli import app

COMMANDS = (
    "",
    "match",
    "match-recognize",
    "explain",
    "convert",
    "simulate",
    "statistics",
    "warmup",
    "bench core",
    "bench match",
    "bench patterns",
    "bench route",
    "lab routing",
    "lab city",
)
ON_A_NODE = (
    "pub", "sub", "top", "admin overview", "admin sessions", "admin session", "admin subscriptions", "admin table",
    "admin links", "admin channels", "admin token",
)  # fmt: skip
"""commands that need a node; `test_http` runs their examples"""
ON_A_FOLDER = {"admin salvage"}
"""commands that want the folder of a node; `tests/node/test_salvage.py` runs them"""
SMALL = {
    "bench core": "--events 50 --rounds 1",
    "bench match": "--filters 10 --events 20 --rounds 1",
    "bench patterns": "--patterns 20 --events 500 --rounds 1 --shape keys",
    "bench route": "--filters 20 --events 50 --changes 10 --rounds 1",
    "lab city": "--taxis 3 --seconds 5",
}
"""what is added to the examples of a command, so that they take no longer than they must"""
ON_SPARK = {"pipeline run", "pipeline check", "pipeline explain", "pipeline status", "pipeline top"}
"""commands that want a pipeline; `docs/how-to/run-a-pipeline.md` has one"""
LABORATORY = {"bench core", "bench match", "bench patterns", "bench route", "lab routing", "lab city"}
"""commands of another distribution"""
TOO_LONG = {
    "lab tables",
    "lab mobility",
    "lab prefix",
    "lab patterns",
    "bench node",
    "bench pipeline",
    "bench rows",
    "bench sigma",
} | {
    "up",
    "demo",
}
"""commands whose examples take minutes, however small, or do not end"""


def commands(command: object, name: str = "") -> Iterator[str]:
    """The names of a command and of all below it, but for groups, which only list others."""
    if not isinstance(command, TyperGroup) or not name:
        yield name
    context: Any = None
    if isinstance(command, TyperGroup):
        for step in command.list_commands(context):
            yield from commands(command.get_command(context, step), f"{name} {step}".strip())


@cache
def help_text(command: str) -> str:
    result = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "80"})
    assert result.exit_code == 0
    return result.stdout


@cache
def tree() -> Any:
    """All commands. Each call of the program makes them anew, and every worker that collects these tests would wait."""
    return typer.main.get_command(app)


def named(name: str) -> Any:
    command = tree()
    for step in name.split():
        command = command.get_command(None, step)
    return command


def examples(command: str) -> list[str]:
    block = (named(command).help or "").partition("Examples:\n")[2].partition("\n\n")[0]
    return [line.strip() for line in block.splitlines()]


def test_no_command_is_forgotten() -> None:
    assert set(commands(tree())) - TOO_LONG == {*COMMANDS, *ON_A_NODE, *ON_A_FOLDER, *ON_SPARK}


@pytest.mark.parametrize("command", COMMANDS)
def test_there_are_a_few_examples_in_every_help(command: str) -> None:
    assert (1 if command == "warmup" else 3) <= len(examples(command)) <= 4
    assert all(re.search(r"(^|\| )fieldfare ", example) for example in examples(command))
    shown = help_text(command).partition("Examples:\n")[2].partition("\n\n")[0]
    assert [line.strip() for line in shown.splitlines()] == examples(command)
    assert all(len(line) <= 80 for line in help_text(command).splitlines() if "fieldfare " not in line)


def cases() -> Iterator[ParameterSet]:
    """All examples; of commands of the laboratory, which compute for a while, all but the first in long runs only."""
    for command in COMMANDS:
        for number, example in enumerate(examples(command)):
            marks = [pytest.mark.long] if number and command in LABORATORY else []
            yield pytest.param(command, example, marks=marks, id=f"{command}-{example}")


@pytest.mark.parametrize(("command", "example"), list(cases()))
def test_every_example_works(command: str, example: str, tmp_path: Path, programs: str) -> None:
    done = shell(f"{example} {SMALL.get(command, '')}", tmp_path, programs)
    assert done.returncode == 0, done.stderr
    assert done.stdout or any(tmp_path.iterdir())


def test_a_node_a_publisher_and_a_subscriber_come_first() -> None:
    listed = help_text("").partition("Commands:\n")[2].split("\n")
    assert [line.split()[0] for line in listed[:3]] == ["up", "pub", "sub"]


@pytest.mark.parametrize("name", sorted({*COMMANDS, *ON_A_NODE, *ON_A_FOLDER, *ON_SPARK, "up", "demo"} - LABORATORY))
def test_the_help_of_an_option_stands_alone(name: str) -> None:
    texts = {parameter.name: parameter.help for parameter in named(name).params if hasattr(parameter, "help")}
    for option, text in texts.items():
        assert text, option
        assert len(text.split()) >= 2, (option, text)
        assert not re.match(r"(Of|So|What|Where|Who|Whose|How|Which|It|They)\b", text), (option, text)


def test_the_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"fieldfare {version('fieldfare')}\n")


def test_python_m_is_the_same_program(tmp_path: Path) -> None:
    assert shell(f"{sys.executable} -m fieldfare --help", tmp_path).stdout == shell("fieldfare --help", tmp_path).stdout


def test_without_a_command_there_is_help() -> None:
    assert "Examples:" in CliRunner().invoke(app, []).output


def test_help_imports_nothing_slow() -> None:
    code = "import sys, fieldfare.cli; print([name for name in ('pyarrow', 'rich', 'numpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    done = shell("FIELDFARE_KERNELS=numpy fieldfare match -o jsonl | head -1", tmp_path)
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_a_terminal_without_box_characters_is_no_error(tmp_path: Path) -> None:
    done = shell('PYTHONIOENCODING=ascii fieldfare explain "price < 5"', tmp_path)
    assert done.returncode == 0, done.stderr
    assert "price < 5" in done.stdout
