"""`fieldfare convert`: filters from one language into another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from fieldfare.cli.errors import Errors, InputError, reported
from fieldfare.cli.formats import inputs
from fieldfare.cli.formats.dialects import Dialect, Target, parse, render
from fieldfare.cli.formats.filter_files import NamedEntry, read_entries
from fieldfare.cli.formats.pattern_tables import pattern_tables
from fieldfare.filters.languages.sigma import LogSchema


@reported()
def command(  # noqa: PLR0917 - options of a command
    text: Annotated[
        str | None,
        typer.Argument(help="Filter; - reads filters from standard input, one a line.", metavar="FILTER"),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File of filters, one a line; or a folder of rules of Sigma."),
    ] = None,
    source: Annotated[Dialect, typer.Option("--from", help="Language of the filters.")] = Dialect.NATIVE,
    target: Annotated[Target, typer.Option("--to", help="Language of the result.")] = Target.NATIVE,
    schema: Annotated[
        str | None, typer.Option(metavar="FILE", help="TOML file that says how log events look to rules of Sigma.")
    ] = None,
    errors: Annotated[
        Errors, typer.Option(help="At a filter that cannot be converted, stop, or skip and count it.")
    ] = Errors.STOP,
) -> None:
    """Convert filters from one language into another.

    A filter in any language means a set of events. The command writes the set in another language, or says that the
    other language cannot express the set. Names are kept: in a file, a line is NAME<TAB>FILTER or just FILTER.
    The languages are native, cesql (CloudEvents SQL; read only), cloudevents (the filters of the CloudEvents
    Subscriptions API), ruler (the event patterns of Event Ruler and Amazon EventBridge) and sigma (detection rules in
    YAML, a file or a folder of them; read only). With --to patterns the correlation rules of Sigma become patterns, as
    tables for the settings of a node.

    Examples:
        fieldfare convert "ANY symbol = 'ACME' AND ANY price < 20" --to ruler
        fieldfare convert "type IN ('trade', 'quote')" --to cloudevents
        fieldfare convert --from cesql "type LIKE 'com.acme.%' AND EXISTS subject"
        fieldfare convert --from ruler '{"price": [{"numeric": [">", 10, "<=", 20]}]}'
    """
    known = _schema(schema)
    entries = _entries(text, file, source)
    tables = target is Target.PATTERNS and source is Dialect.SIGMA
    count = skipped = 0
    for entry in pattern_tables(entries, known) if tables else entries:
        count += 1
        try:
            typer.echo(_converted(entry, target, known))
        except InputError as error:
            if errors is Errors.STOP:
                raise
            skipped += 1
            typer.echo(f"skipped: {error}", err=True)
    if skipped:
        typer.echo(f"{skipped:,} of {count:,} filters skipped", err=True)


def _schema(file: str | None) -> LogSchema:
    if file is None:
        return LogSchema()
    try:
        with inputs.source_of(file).open() as stream:
            return LogSchema.read(stream.read().decode(), file)
    except (OSError, ValueError) as error:
        raise InputError(file, error) from None


def _converted(entry: NamedEntry | InputError | str, target: Target, schema: LogSchema) -> str:
    if isinstance(entry, InputError):
        raise entry
    if isinstance(entry, str):
        return entry
    place, name, written, dialect = entry
    result = render(parse(written, dialect, place, schema), target, place)
    return f"{name}\t{result}" if name else result


def _entries(text: str | None, file: str | None, dialect: Dialect) -> Iterator[NamedEntry | InputError]:
    """Yield the filters to convert; an entry without a name in the input has the name ""."""
    if (text is None) == (file is None):
        raise InputError("", "give a filter or --file FILE, and not both")
    if text is not None and text != inputs.STDIN:
        yield NamedEntry("FILTER", "", text, dialect)
        return
    for source in inputs.sources_of(file if file is not None else inputs.STDIN):
        for entry in read_entries(source, dialect):
            numbered = isinstance(entry, NamedEntry) and entry.place == f"{source.name}:{entry.name}"
            if isinstance(entry, NamedEntry) and numbered and isinstance(entry.written, str):
                yield entry._replace(name="")
            else:
                yield entry
