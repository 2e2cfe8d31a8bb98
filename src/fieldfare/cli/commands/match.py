"""`fieldfare match`: match events of a file or a stream with filters."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from fieldfare.cli.errors import Errors, InputError, reported
from fieldfare.cli.formats import inputs
from fieldfare.cli.formats.dialects import Dialect, parse
from fieldfare.cli.formats.event_files import BadEvent, EventsFormat, count_events, format_of, read_events
from fieldfare.cli.formats.filter_files import Named, read_filters
from fieldfare.cli.formats.outcome import Result, Tally
from fieldfare.events import Event
from fieldfare.filters.constraint import Mode

if TYPE_CHECKING:
    from fieldfare.matching.index import Index


class Output(StrEnum):
    """The form of the result."""

    TABLE = "table"
    JSONL = "jsonl"
    PARQUET = "parquet"


class Reading(StrEnum):
    """The way in which an interval in an event matches."""

    OVERLAPS = "overlaps"
    COVERS = "covers"


@reported()
def command(
    events: Annotated[
        str | None,
        typer.Argument(
            help="File of events: JSON lines, CSV, Parquet, - for standard input. [default: a sample]", metavar="EVENTS"
        ),
    ] = None,
    filters: Annotated[
        str | None,
        typer.Argument(
            help="File of filters: a filter a line, JSON lines, CSV, Parquet. [default: a sample]", metavar="FILTERS"
        ),
    ] = None,
    *,
    inline: Annotated[
        list[str] | None,
        typer.Option("--filter", "-f", metavar="FILTER", help="Filter, instead of a file; may be repeated."),
    ] = None,
    dialect: Annotated[Dialect, typer.Option(help="Language of filters that name no dialect.")] = Dialect.NATIVE,
    events_format: Annotated[
        EventsFormat | None, typer.Option(help="Format of the events. [default: by the file's name]")
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="Form of the result.")] = Output.TABLE,
    to: Annotated[Path | None, typer.Option(help="File for the result as jsonl or parquet.", metavar="FILE")] = None,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="Number of events in the table.")] = 20,
    mode: Annotated[
        Reading, typer.Option(help="Must an interval in an event overlap the filter's, or be covered by it?")
    ] = Reading.OVERLAPS,
    errors: Annotated[Errors, typer.Option(help="At a bad event, stop, or skip and count it.")] = Errors.STOP,
) -> None:
    """Match events with filters, and show which filters each event matches.

    Events are JSON objects or CloudEvents, one a line, or rows of a CSV or
    Parquet file. Filters are lines of text, NAME<TAB>FILTER or just FILTER, or rows with the columns id and filter.
    Without files, a sample of market data is used, with quotes and trades and the filters of 300 subscribers.
    With -o jsonl the result of each event is printed at once, so that a stream can be followed.

    Examples:
        fieldfare match
        fieldfare match --filter "price < 20 AND symbol STARTS WITH 'K'" --limit 5
        fieldfare match --output parquet --to matches.parquet
        echo '{"symbol": "ACME", "price": 12}' | fieldfare match - -f "price < 20" -o jsonl
    """
    from fieldfare.cli.formats.output_files import write_jsonl, write_parquet
    from fieldfare.cli.formats.output_text import print_table
    from fieldfare.cli.progress import tracked

    _refuse_contradictions(events, filters, inline, output, to)
    source = inputs.sample("events.jsonl") if events is None else inputs.source_of(events)
    wanted = _wanted(filters, inline or [], dialect)
    bundled = [what for what, given in (("events", events), ("filters", filters or inline or None)) if given is None]
    if bundled:
        typer.echo(f"Using the {' and '.join(bundled)} of the bundled market data sample.", err=True)
    format_ = format_of(source, events_format)
    tally = Tally(filters=len(wanted))
    index = indexed(wanted)
    started = time.process_time()  # for reading and matching events; kernels are loaded by now
    results = _matched(read_events(source, format_), wanted, index, mode=mode.value, errors=errors, tally=tally)
    if output is not Output.JSONL or to is not None:  # lines that scroll by are progress enough
        results = tracked(results, lambda: count_events(source, format_))
    shown: list[Result] = []
    if output is Output.JSONL:
        write_jsonl(results, to)
    elif output is Output.PARQUET:
        write_parquet(results, cast(Path, to))
    else:
        shown = _exhaust(results, limit)
    tally.seconds = time.process_time() - started
    if output is Output.TABLE:
        print_table(shown, tally)
    else:
        typer.echo(str(tally), err=True)


def indexed(filters: Sequence[Named]) -> Index[int]:
    """Return an index of the filters by their place, with compiled kernels only if the kernels are on disk already.

    A command is too short to wait for a compilation.
    """
    from fieldfare.matching import backend
    from fieldfare.matching.index import Index

    return Index(
        ((place, wanted) for place, (_, wanted) in enumerate(filters)), kernels="auto" if backend.cached() else "numpy"
    )


def _matched(
    events: Iterable[Event | BadEvent],
    filters: Sequence[Named],
    index: Index[int],
    *,
    mode: Mode,
    errors: Errors,
    tally: Tally,
) -> Iterator[Result]:
    """Yield each event with its matches, and count both in `tally`."""
    for number, event in enumerate(events, 1):
        if isinstance(event, BadEvent):
            if errors is Errors.STOP:
                raise InputError(event.place, event.error)
            tally.skipped += 1
            continue
        result = Result(number, event, [filters[place][0] for place in sorted(index.match(event, mode))])
        tally.count(result)
        yield result


def _wanted(filters: str | None, inline: Sequence[str], dialect: Dialect) -> list[Named]:
    if inline:
        return [Named(text, parse(text, dialect, "--filter")) for text in dict.fromkeys(inline)]
    if filters is None:
        return read_filters(inputs.sample("filters.txt"), Dialect.NATIVE)
    return read_filters(inputs.source_of(filters), dialect)


def _exhaust(results: Iterable[Result], limit: int) -> list[Result]:
    """Run through all results, and return the first `limit` of them."""
    kept: list[Result] = []
    for result in results:
        if len(kept) < limit:
            kept.append(result)
    return kept


def _refuse_contradictions(
    events: str | None, filters: str | None, inline: Sequence[str] | None, output: Output, to: Path | None
) -> None:
    if filters is not None and inline:
        raise InputError("", "filters come from a file or from --filter, not from both")
    if events == filters == inputs.STDIN:
        raise InputError("", "events and filters cannot both come from standard input")
    if output is Output.PARQUET and to is None:
        raise InputError("", "--output parquet needs --to FILE")
    if output is Output.TABLE and to is not None:
        raise InputError("", "--to is for --output jsonl or parquet; a table is printed")
