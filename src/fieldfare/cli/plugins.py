"""Commands that other distributions add, as entry points of the group `fieldfare.commands`.

Each entry point is a Typer application. A command of a distribution that is known but not installed stays callable, and
says in one line which distribution to install.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint
from typing import Final

import typer

from fieldfare.cli.errors import fail

GROUP: Final = "fieldfare.commands"
DISTRIBUTIONS: Final[Mapping[str, str]] = {"bench": "fieldfare-lab", "lab": "fieldfare-lab"}
"""the distribution that brings each known command"""


def add_plugins(app: typer.Typer, plugins: Iterable[EntryPoint]) -> None:
    """Add the commands of all plug-ins, and a line of advice for each known command that no plug-in brings."""
    found = {plugin.name: plugin for plugin in plugins}
    for name, plugin in found.items():
        app.add_typer(plugin.load(), name=name)
    for name, distribution in DISTRIBUTIONS.items():
        if name not in found:  # whatever follows the name, also --help, gets the same answer
            anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
            app.command(name, hidden=True, context_settings=anything)(_absent(name, distribution))


def _absent(name: str, distribution: str) -> Callable[[], None]:
    """Make a command that names the distribution to install."""

    def command() -> None:
        fail(f"fieldfare {name} is not installed: pip install {distribution}")

    return command
