"""The command line: `fieldfare up`, `pub`, `sub` and the other commands.

A command is one function in a module of `commands`; pure functions in `formats` and `pages` make the output. A function
imports slow packages (Arrow, rich) itself, so that `fieldfare --help` answers at once. Other distributions add commands
as entry points of the group `fieldfare.commands`, each a Typer application: the laboratory adds `lab` and `bench`.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from importlib.metadata import version as version_of
from typing import Annotated, Final

import typer

from fieldfare.cli.commands import (
    admin,
    convert,
    demo,
    explain,
    match,
    match_recognize,
    pipeline,
    pipeline_top,
    pub,
    salvage,
    simulate,
    statistics,
    sub,
    top,
    up,
    warmup,
)
from fieldfare.cli.help import help_of
from fieldfare.cli.plugins import Commands

app: Final = typer.Typer(
    name="fieldfare",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: rich would take `[...]` in an example for markup, and the time to be imported
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line; a terminal without Unicode gets replacement characters instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors="replace")  # a box character must not stop a terminal that lacks it
    app(prog_name="fieldfare")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fieldfare {version_of('fieldfare')}")
        raise typer.Exit


def start(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version, and exit.")
    ] = False,
) -> None:
    """Content-based publish/subscribe: each event reaches exactly the subscribers whose filters match.

    A filter selects events by their fields: price < 20 AND symbol STARTS WITH 'A'. To begin, start a node with
    fieldfare up, subscribe with fieldfare sub, and publish with fieldfare pub. Filters are sets, so they can be
    compared, merged and inverted; match, explain and convert work without a node.

    Examples:
        fieldfare match
        fieldfare explain "price > 100 AND price <= 120.5"
        fieldfare convert --from ruler '{"price": [{"numeric": ["<", 20]}]}'
    """


app.callback(help=help_of(start))(start)
for _name, _command in (
    ("up", up.command),
    ("pub", pub.command),
    ("sub", sub.command),
    ("top", top.command),
    ("demo", demo.command),
    ("match", match.command),
    ("match-recognize", match_recognize.command),
    ("explain", explain.command),
    ("convert", convert.command),
    ("simulate", simulate.command),
    ("statistics", statistics.command),
    ("warmup", warmup.command),
):
    app.command(_name, help=help_of(_command))(_command)

admins: Final = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look into a node, and repair it.")
_admin: tuple[tuple[str, Callable[..., None]], ...] = (
    ("overview", admin.overview),
    ("sessions", admin.sessions),
    ("session", admin.session),
    ("subscriptions", admin.subscriptions),
    ("table", admin.table),
    ("links", admin.links),
    ("channels", admin.channels),
    ("token", admin.make_token),
    ("salvage", salvage.command),
)
for _name, _command in _admin:
    admins.command(_name, help=help_of(_command))(_command)
app.add_typer(admins, name="admin")

pipelines: Final = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Process events in bulk, on Spark.")
_pipeline: tuple[tuple[str, Callable[..., None]], ...] = (
    ("run", pipeline.run),
    ("check", pipeline.check),
    ("status", pipeline.status),
    ("top", pipeline_top.command),
    ("explain", pipeline.explain),
)
for _name, _command in _pipeline:
    pipelines.command(_name, help=help_of(_command))(_command)
app.add_typer(pipelines, name="pipeline")
