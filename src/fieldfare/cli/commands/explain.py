"""`fieldfare explain`: the meaning of a filter or a pattern, relations to other filters, and the reasons for a match.

With `--table`, the command shows how many filters cover each other, as a page or a picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from fieldfare.cli.errors import InputError, reported
from fieldfare.cli.formats import inputs
from fieldfare.cli.formats.dialects import Dialect, parse
from fieldfare.cli.formats.event_files import BadEvent, format_of, read_events
from fieldfare.cli.formats.filter_files import Named, read_filters
from fieldfare.cli.formats.relations import covering, relate
from fieldfare.events import Event, EventError
from fieldfare.events.cloudevents import decode_any
from fieldfare.filters.diagnosis import diagnose

if TYPE_CHECKING:
    from fieldfare.patterns import Occurrence

UNTRUE: Final = 1
"""exit code if --covers or --covered-by is answered with no"""


class Structure(StrEnum):
    """The covers that a drawn table shows: all immediate covers of a filter, or one."""

    POSET = "poset"
    FOREST = "forest"


@reported()
def command(
    text: Annotated[str | None, typer.Argument(help="Filter to explain.", metavar="FILTER", show_default=False)] = None,
    *,
    covers: Annotated[
        list[str] | None, typer.Option(metavar="FILTER", help="Does the explained filter cover FILTER? yes or no.")
    ] = None,
    covered_by: Annotated[
        list[str] | None, typer.Option(metavar="FILTER", help="Does FILTER cover the explained filter? yes or no.")
    ] = None,
    other: Annotated[
        list[str] | None, typer.Option(metavar="FILTER", help="Compare the explained filter with FILTER.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option("--against", "--with", metavar="FILE", help="Compare the explained filter with those in a file."),
    ] = None,
    event: Annotated[
        list[str] | None, typer.Option(metavar="JSON", help="Does the event match, and if not, why?")
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Pattern to explain in place of a filter, or @FILE."),
    ] = None,
    events: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="With --pattern: what the pattern finds in these events, and why not more."),
    ] = None,
    table: Annotated[
        str | None, typer.Option(metavar="FILE", help="File of filters to show as a table, on a web page.")
    ] = None,
    structure: Annotated[
        Structure, typer.Option(help="Draw all immediate covers of a filter, or one.")
    ] = Structure.POSET,
    as_svg: Annotated[bool, typer.Option("--svg", help="Write a picture of the table instead of a page.")] = False,
    to: Annotated[Path | None, typer.Option(metavar="FILE", help="File for the page or picture.")] = None,
    dialect: Annotated[Dialect, typer.Option(help="Language of the filters.")] = Dialect.NATIVE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Explain a filter, and draw the values that the filter allows.

    First comes the normal form, which is the same for all filters with the same meaning; then, for each field, the set
    of allowed values, as a line. A filter covers another if it matches every event that the other matches. --covers
    and --covered-by answer yes or no with the reason, and the exit code is 0 or 1. --other and --against compare with
    other filters in every way, and show the merged filter. --event shows the constraints that an event fails.

    --pattern shows an automaton, how its events relate, and what it can cost. With --events it tells the detections
    in a file, in the order of the field `time`, and the near misses: events that a single demand kept from a match.

    --table shows many filters at once, as a page to open in a browser: which filter covers which, their interfaces,
    which could be merged, and which of them an event matches.

    Examples:
        fieldfare explain "price > 100 AND price <= 120.5 AND symbol STARTS WITH 'A'"
        fieldfare explain "price < 5" --covered-by "price < 10" --other "price > 3"
        fieldfare explain --pattern "a: [price > 100] b: [price < 20] a followed by b within 9 s"
        fieldfare explain --table sample:filters.txt --to table.html
    """
    from fieldfare.cli.formats import explanation

    if sum(one is not None for one in (text, table, pattern)) != 1:
        raise InputError("", "give a filter, --pattern TEXT or --table FILE, and only one of them")
    if events is not None and pattern is None:
        raise InputError("--events", "events are for --pattern; --event shows why a filter does not match")
    if pattern is not None:
        if covers or covered_by or other or against or event or as_svg or to:
            raise InputError("--pattern", "only --events and --json go with a pattern")
        _show_pattern(pattern, events, as_json=as_json)
        return
    if table is not None:
        if covers or covered_by or other or against:
            raise InputError("", "--table compares all filters of a file: leave out what compares a single one")
        _show_table(table, structure, dialect, event or (), as_json=as_json, as_svg=as_svg, to=to)
        return
    if as_svg or to or structure is not Structure.POSET or len(event or ()) > 1:
        raise InputError("", "--svg, --to, --structure and a second --event are for --table FILE")
    wanted = parse(text, dialect, "FILTER")
    coverings = [covering(wanted, parse(one, dialect, "--covers")) for one in covers or ()]
    coverings += [covering(parse(one, dialect, "--covered-by"), wanted) for one in covered_by or ()]
    relations = [relate(wanted, one.filter, one.name) for one in _others(other or (), against, dialect)]
    reports = diagnose(wanted, _decoded(event[0])) if event else None
    found = explanation.Explanation(wanted, coverings, relations, reports)
    if as_json:
        typer.echo(explanation.as_json(found))
    else:
        explanation.show(found)
    if not all(one.holds for one in coverings):
        raise typer.Exit(UNTRUE)


def _others(texts: Sequence[str], file: str | None, dialect: Dialect) -> list[Named]:
    given = [Named(f"other {number}", parse(text, dialect, "--other")) for number, text in enumerate(texts, 1)]
    return given if file is None else given + read_filters(inputs.source_of(file), dialect)


def _decoded(text: str) -> Event:
    try:
        return decode_any(text)
    except EventError as error:
        raise InputError("--event", error) from None


def _show_pattern(text: str, file: str | None, *, as_json: bool) -> None:
    from fieldfare.cli.formats import pattern_explanation

    history = None if file is None else _history(inputs.source_of(file))
    found = pattern_explanation.explain_pattern(pattern_explanation.read_pattern(text), history)
    if as_json:
        typer.echo(pattern_explanation.as_json(found))
    else:
        pattern_explanation.show(found)


def _history(source: inputs.Source) -> list[Occurrence]:
    """Return the events of a file with their times; an event without the field `time` comes a second after the last."""
    from fieldfare.patterns import occurrence

    found: list[Occurrence] = []
    for number, event in enumerate(read_events(source, format_of(source)), 1):
        if isinstance(event, BadEvent):
            raise InputError("--events", event)
        after = found[-1].high / 1e6 + 1 if found else 0.0
        found.append(occurrence(event, after, number=number))
    return found


def _show_table(
    file: str,
    structure: Structure,
    dialect: Dialect,
    events: Sequence[str],
    *,
    as_json: bool,
    as_svg: bool,
    to: Path | None,
) -> None:
    from fieldfare.cli.formats.table_files import read_table, table_source
    from fieldfare.cli.pages import table as table_page
    from fieldfare.cli.pages import table_svg
    from fieldfare.tables.cover_graph import cover_graph

    source = table_source(file)
    graph = cover_graph(read_table(source, dialect), structure.value)
    tried = [table_page.tried(graph, text, _decoded(text)) for text in events]
    if as_json:
        written = table_page.as_json(graph, structure, tried)
    elif as_svg:
        matched = [place for one in tried for place in one.matched]
        written = table_svg.svg(table_svg.picture(graph), matched)
    else:
        written = table_page.page(table_svg.picture(graph), source.name, structure, tried)
    if to is None:
        typer.echo(written)
        return
    to.write_text(f"{written}\n", "utf-8")
    found = {"filter": graph.filters, "root": graph.roots, "merger": graph.mergers}
    typer.echo(f"{', '.join(table_page.count(len(some), what) for what, some in found.items())}: {to}", err=True)
