"""`fieldfare admin salvage`: repair the damaged folder of a node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldfare.cli.commands.admin import JsonOption
from fieldfare.cli.errors import DAMAGED, InputError, reported
from fieldfare.cli.formats.columns import columns
from fieldfare.cli.formats.outcome import counted

if TYPE_CHECKING:
    from fieldfare.node.storage.salvage import SalvageReport


@reported()
def command(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the node (its --data).")],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the damage, and change nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Repair the folder of a node that does not start, and list the events and rows that are lost.

    The node must not run. Damaged files are copied to a folder salvaged-1 (2, 3, ...) beside them. The exit code is 0
    if nothing is lost, 1 if something is, and 2 if the folder cannot be used.

    Examples:
        fieldfare admin salvage here --dry-run
    """
    import msgspec

    from fieldfare.node.storage.log import LogError
    from fieldfare.node.storage.rows import StoreError
    from fieldfare.node.storage.salvage import salvage

    try:
        report = salvage(folder, dry_run=dry_run)
    except (StoreError, LogError) as error:
        raise InputError("", error) from None
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(report)).decode())
    else:
        typer.echo(_shown(report))
    if not report.is_whole:
        raise typer.Exit(DAMAGED)


def _shown(report: SalvageReport) -> str:
    """Return a report as text, with a row for each loss."""
    lines = [*report.problems, *report.notes]
    rows = [
        (
            "log",
            f"{gap.first} to {gap.last}",
            f"{'' if gap.exact else 'at most '}{_events(gap.last - gap.first + 1)}",
            gap.why,
        )
        for gap in report.gaps
    ]
    rows += [
        (one.kind, " ".join(map(str, one.key)) or "?", counted(one.rows, "row") if one.rows else "any number", one.why)
        for one in report.rows
    ]
    rows += [
        ("session", name, f"at most {_events(count)}", "waited for it, and counts as dropped")
        for name, count in report.dropped.items()
    ]
    if rows:
        lines.append(columns(("gone", "what", "how much", "why"), rows))
    if report.originals:
        lines.append(f"The damaged files are in {report.originals} now.")
    if report.is_whole:
        lines.append("Nothing is gone." if report.problems else "Everything is whole.")
    elif report.dry_run:
        lines.append("Nothing was done yet.")
    else:
        lines.append("The rest is whole: the node can start.")
    return "\n".join(lines)


def _events(count: int) -> str:
    return counted(count, "event")
