"""`fieldfare match-recognize`: SQL's row patterns over the rows of a file."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fieldfare.cli.errors import InputError, reported
from fieldfare.cli.formats import inputs


class RowsFormat(StrEnum):
    """The format of a file of rows."""

    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


_SAMPLE: Final = "sample:events.jsonl"
_ENDINGS: Final = {
    "csv": RowsFormat.CSV,
    "parquet": RowsFormat.PARQUET,
    "jsonl": RowsFormat.JSONL,
    "ndjson": RowsFormat.JSONL,
}


@reported()
def command(
    rows: Annotated[str, typer.Argument(help="File of rows: CSV, JSON lines, Parquet; - for CSV.", metavar="ROWS")],
    clause: Annotated[
        str,
        typer.Argument(help="MATCH_RECOGNIZE clause, from PARTITION BY to DEFINE; @FILE reads it.", metavar="CLAUSE"),
    ],
    *,
    rows_format: Annotated[
        RowsFormat | None, typer.Option("--format", help="Format of the rows. [default: by the file's name]")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="File for the matches: .csv, .jsonl or .parquet.", metavar="FILE")
    ] = None,
) -> None:
    """Find patterns in the rows of a file, by the MATCH_RECOGNIZE clause of SQL.

    Rows are sorted by the clause, and matches are printed as JSON lines, or written to a file. The types of columns are
    those of Parquet, or found out from the values of CSV and JSON; a column of JSON with values of several types is
    read as texts. The rows sample:events.jsonl are a sample of market data.

    Examples:
        fieldfare match-recognize sample:events.jsonl "ORDER BY time MEASURES FIRST(change) AS low PATTERN (a up{4,}) DEFINE up AS change > PREV(change)"
        fieldfare match-recognize sample:events.jsonl "PARTITION BY symbol ORDER BY time MEASURES count(*) AS n PATTERN (a+)" --to n.parquet
        echo '{"x": 1}' | fieldfare match-recognize - "MEASURES CLASSIFIER() AS c PATTERN (a)" --format jsonl
    """  # noqa: E501 - an example is a line
    from fieldfare.filters.errors import FilterSyntaxError
    from fieldfare.patterns.row_patterns import match_recognize

    source = inputs.sample("events.jsonl") if rows == _SAMPLE else inputs.source_of(rows)
    table = _read(source, rows_format or _ENDINGS.get(source.suffix, RowsFormat.CSV))
    text = _text(clause)
    try:
        found = match_recognize(table, text)
    except FilterSyntaxError as error:
        raise InputError("CLAUSE", error) from None
    except ValueError as error:
        raise InputError(source.name, error) from None
    if to is None:
        _write_lines(found, sys.stdout.buffer)
    else:
        _write(found, to)


def _text(clause: str) -> str:
    if not clause.startswith("@"):
        return clause
    with inputs.source_of(clause[1:]).open() as stream:
        return stream.read().decode()


def _read(source: inputs.Source, form: RowsFormat) -> Any:
    import msgspec
    import pyarrow as pa
    from pyarrow import csv, json, parquet

    with source.open() as stream:
        try:
            if form is RowsFormat.PARQUET:
                return parquet.read_table(stream if stream.seekable() else pa.BufferReader(stream.read()))
            if form is RowsFormat.CSV:
                return csv.read_csv(stream)
            lines = stream.read()
            try:
                return json.read_json(pa.BufferReader(lines))
            except pa.ArrowInvalid:
                return _mixed(lines)
        except (pa.ArrowInvalid, msgspec.DecodeError) as error:
            raise InputError(source.name, f"no rows of {form.value}: {error}") from None


def _mixed(lines: bytes) -> Any:
    """Return rows of JSON whose columns may have values of several types; such a column becomes texts."""
    import msgspec
    import pyarrow as pa

    rows = [msgspec.json.decode(line, type=dict[str, Any]) for line in lines.splitlines() if line.strip()]
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            texts = [
                one if one is None or isinstance(one, str) else msgspec.json.encode(one).decode() for one in values
            ]
            columns[name] = pa.array(texts, pa.string())
    return pa.table(columns)


def _write(found: Any, to: Path) -> None:
    from pyarrow import csv, parquet

    form = _ENDINGS.get(to.suffix.removeprefix(".").lower())
    if form is None:
        raise InputError(str(to), f"the name must end in {', '.join('.' + ending for ending in _ENDINGS)}")
    part = to.with_name(f"{to.name}.part")
    try:
        with part.open("wb") as stream:
            if form is RowsFormat.JSONL:
                _write_lines(found, stream)
            elif form is RowsFormat.CSV:
                csv.write_csv(found, stream)
            else:
                parquet.write_table(found, stream)
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)


def _write_lines(found: Any, stream: Any) -> None:
    import msgspec

    for batch in found.to_batches(1 << 14):
        for row in batch.to_pylist():
            stream.write(msgspec.json.encode(row, enc_hook=str) + b"\n")
