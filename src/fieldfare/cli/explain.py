"""`fieldfare explain`: what a filter means, how it stands to others, and why an event matches it or does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from fieldfare.cli import sources
from fieldfare.cli.dialects import Dialect, parse
from fieldfare.cli.errors import InputError, reported
from fieldfare.cli.event_files import decode
from fieldfare.cli.filter_files import Named, read_filters
from fieldfare.cli.relations import covering, relate
from fieldfare.events import EventError
from fieldfare.filters import Filter
from fieldfare.filters.diagnosis import BranchReport, diagnose

UNTRUE: Final = 1
"""the exit code when the answer to --covers or --covered-by is no"""


@reported()
def command(
    text: Annotated[str, typer.Argument(help="The filter.", metavar="FILTER")],
    *,
    covers: Annotated[
        list[str] | None, typer.Option(metavar="FILTER", help="Does it cover this one? yes or no.")
    ] = None,
    covered_by: Annotated[
        list[str] | None, typer.Option(metavar="FILTER", help="Is it covered by this one? yes or no.")
    ] = None,
    other: Annotated[list[str] | None, typer.Option(metavar="FILTER", help="Compare it with this one.")] = None,
    against: Annotated[
        str | None, typer.Option("--against", "--with", metavar="FILE", help="Compare it with the filters in a file.")
    ] = None,
    event: Annotated[str | None, typer.Option(metavar="JSON", help="Does this event match, and why not?")] = None,
    dialect: Annotated[Dialect, typer.Option(help="The language of the filters.")] = Dialect.NATIVE,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Explain a filter, and draw the values it allows.

    First comes the normal form, which is the same for all filters that mean the same; then, for each field, the set of
    values it allows, as a line. A filter covers another if it matches every event that the other matches. --covers and
    --covered-by ask for just that: the answer is yes or no with the reason, and the exit code is 0 or 1. --other and
    --against compare with other filters in every way and say what they merge into. --event tells which constraints an
    event fails.

    Examples:
        fieldfare explain "price > 100 AND price <= 120.5 AND symbol STARTS WITH 'A'"
        fieldfare explain "price < 5" --covered-by "price < 10"
        fieldfare explain "price < 10" --other "price < 5" --other "price BETWEEN 8 AND 20"
        fieldfare explain "price < 10 AND symbol = 'ACME'" --event '{"price": 12, "symbol": "ACME"}'
    """
    from fieldfare.cli import explanation

    wanted = parse(text, dialect, "FILTER")
    coverings = [covering(wanted, parse(one, dialect, "--covers")) for one in covers or ()]
    coverings += [covering(parse(one, dialect, "--covered-by"), wanted) for one in covered_by or ()]
    relations = [relate(wanted, one.filter, one.name) for one in _others(other or (), against, dialect)]
    reports = None if event is None else _diagnosed(wanted, event)
    found = explanation.Explanation(wanted, coverings, relations, reports)
    if as_json:
        typer.echo(explanation.as_json(found))
    else:
        explanation.show(found)
    if not all(one.holds for one in coverings):
        raise typer.Exit(UNTRUE)


def _others(texts: Sequence[str], file: str | None, dialect: Dialect) -> list[Named]:
    given = [Named(f"other {number}", parse(text, dialect, "--other")) for number, text in enumerate(texts, 1)]
    return given if file is None else given + read_filters(sources.source_of(file), dialect)


def _diagnosed(wanted: Filter, text: str) -> list[BranchReport]:
    try:
        return diagnose(wanted, decode(text))
    except EventError as error:
        raise InputError("--event", error) from None
