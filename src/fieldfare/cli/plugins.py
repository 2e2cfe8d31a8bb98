"""Commands that other distributions add, as entry points of the group `fieldfare.commands`.

Each entry point is a Typer application. Fieldfare imports an application when a user asks for its command or for the
list of commands, so that `fieldfare up` never imports the laboratory. A command of a distribution that is known but not
installed stays callable, and says in one line which distribution to install.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Final

import typer
from typer.core import TyperGroup

from fieldfare.cli.errors import fail

GROUP: Final = "fieldfare.commands"
DISTRIBUTIONS: Final[Mapping[str, str]] = {"bench": "fieldfare-lab", "lab": "fieldfare-lab"}
"""the distribution that brings each known command"""


class Commands(TyperGroup):
    """A group of commands to which the plug-ins add theirs."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the commands of Fieldfare, then those of the plug-ins."""
        plugins = (plugin.name for plugin in entry_points(group=GROUP))
        return list(dict.fromkeys((*super().list_commands(ctx), *plugins)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Find a command; import its plug-in if need be."""
        if cmd_name not in self.commands:
            for plugin in entry_points(group=GROUP, name=cmd_name):
                self.add_command(typer.main.get_group(plugin.load()), cmd_name)
        if cmd_name not in self.commands and cmd_name in DISTRIBUTIONS:
            self.add_command(typer.main.get_command(_advice(cmd_name)), cmd_name)
        return super().get_command(ctx, cmd_name)


def _advice(name: str) -> typer.Typer:
    """Return an application that says what to install, whatever follows the name, also `--help`."""
    anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    app = typer.Typer(add_completion=False)
    app.command(name, context_settings=anything)(_absent(name, DISTRIBUTIONS[name]))
    return app


def _absent(name: str, distribution: str) -> Callable[[], None]:
    """Make a command that names the distribution to install."""

    def command() -> None:
        fail(f"fieldfare {name} is not installed: pip install {distribution}")

    return command
