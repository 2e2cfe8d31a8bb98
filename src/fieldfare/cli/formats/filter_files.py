"""Filters with names, from a text file, JSON lines, CSV or Parquet.

In a text file a line is `NAME<TAB>FILTER`, or just `FILTER`, whose name is then the number of the line; blank lines and
lines that start with `#` are skipped. A JSON line is `{"id": ..., "filter": ..., "dialect": ...}`, and needs only
`filter`, a text or, in a JSON dialect, a document. CSV and Parquet have the columns `id` and `filter`. A YAML file has
rules of Sigma, whose names are their ids.

A bad line does not end the reading: the reader yields an `InputError`, and the caller decides.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

from fieldfare.cli.errors import InputError
from fieldfare.cli.formats.dialects import Dialect, parse
from fieldfare.cli.formats.inputs import Source, as_text
from fieldfare.filters import Filter


class Named(NamedTuple):
    """A filter with the name of its subscriber."""

    name: str
    filter: Filter


class NamedEntry(NamedTuple):
    """A filter as a file has it, not parsed yet."""

    place: str
    name: str
    written: object
    dialect: Dialect


def read_filters(source: Source, dialect: Dialect) -> list[Named]:
    """Return the filters of a file; InputError if two filters have the same name."""
    found: dict[str, str] = {}
    filters = []
    for entry in read_entries(source, dialect):
        if isinstance(entry, InputError):
            raise entry
        place, name, written, language = entry
        if name in found:
            raise InputError(place, f"the name {name!r} is taken already, at {found[name]}")
        found[name] = place
        filters.append(Named(name, parse(written, language, place)))
    return filters


def read_entries(source: Source, dialect: Dialect) -> Iterator[NamedEntry | InputError]:
    """Yield the entries of a file in their order."""
    readers = {
        **dict.fromkeys(("jsonl", "ndjson", "json"), _jsonl),
        "csv": _csv,
        **dict.fromkeys(("parquet", "pq"), _parquet),
        **dict.fromkeys(("yml", "yaml"), _yaml),
    }
    with source.open() as stream:
        yield from readers.get(source.suffix, _text)(stream, source.name, dialect)


def _text(stream: IO[bytes], file: str, dialect: Dialect) -> Iterator[NamedEntry | InputError]:
    for number, line in _lines(stream):
        place = f"{file}:{number}"
        if isinstance(line, UnicodeDecodeError):
            yield _undecoded(place, line)
        elif not line.startswith("#"):
            name, tab, written = line.partition("\t")
            if tab and not line.startswith(("{", "[")):  # a tab in a JSON document is just space
                yield NamedEntry(place, name.strip(), written.strip(), dialect)
            else:
                yield NamedEntry(place, str(number), line, dialect)


def _jsonl(stream: IO[bytes], file: str, dialect: Dialect) -> Iterator[NamedEntry | InputError]:
    for number, line in _lines(stream):
        place = f"{file}:{number}"
        yield _undecoded(place, line) if isinstance(line, UnicodeDecodeError) else _json(line, place, number, dialect)


def _json(line: str, place: str, number: int, dialect: Dialect) -> NamedEntry | InputError:
    try:
        tree: Any = json.loads(line)
    except json.JSONDecodeError as error:
        return InputError(place, f"not JSON: {error.msg} (column {error.colno})")
    if not isinstance(tree, dict) or "filter" not in tree:
        return InputError(place, 'a line of filters is an object such as {"id": "cheap", "filter": "price < 5"}')
    try:
        language = Dialect(tree.get("dialect", dialect))
    except ValueError:
        return InputError(place, f"the dialect is none of {', '.join(Dialect)}: {tree['dialect']!r}")
    return NamedEntry(place, str(tree.get("id", number)), tree["filter"], language)


def _csv(stream: IO[bytes], file: str, dialect: Dialect) -> Iterator[NamedEntry]:
    with as_text(stream) as text:
        rows = csv.DictReader(text, strict=True)
        try:
            _refuse_without_filter(rows.fieldnames or (), file)
            for row in rows:
                place = f"{file}:{rows.line_num}"
                yield NamedEntry(place, row.get("id") or str(rows.line_num), row["filter"] or "", dialect)
        except csv.Error as error:
            raise InputError(f"{file}:{rows.line_num}", error) from None


def _parquet(stream: IO[bytes], file: str, dialect: Dialect) -> Iterator[NamedEntry]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(stream if stream.seekable() else io.BytesIO(stream.read()))
    except (pa.ArrowException, OSError) as error:
        raise InputError(file, f"not a Parquet file: {error}") from None
    _refuse_without_filter(table.column_names, file)
    for number, row in enumerate(table.to_pylist(), 1):
        name = row.get("id")
        yield NamedEntry(f"{file}:row {number}", str(number if name is None else name), row["filter"] or "", dialect)


def _yaml(stream: IO[bytes], file: str, dialect: Dialect) -> Iterator[NamedEntry | InputError]:
    from fieldfare.filters.languages import sigma

    if dialect is not Dialect.SIGMA:
        yield InputError(file, "a YAML file has rules of Sigma; say so with the dialect sigma")
        return
    try:
        for number, rule in enumerate(sigma.documents(stream.read()), 1):
            name = str(rule.get("id") or rule.get("title") or rule.get("name") or number)
            yield NamedEntry(f"{file}:{name}", name, rule, dialect)
    except ValueError as error:
        yield InputError(file, error)


def _lines(stream: IO[bytes]) -> Iterator[tuple[int, str | UnicodeDecodeError]]:
    """Yield the lines that are not blank, with their numbers."""
    for number, raw in enumerate(stream, 1):
        try:
            line = raw.decode("utf-8-sig" if number == 1 else "utf-8").strip()
        except UnicodeDecodeError as error:
            yield number, error
        else:
            if line:
                yield number, line


def _undecoded(place: str, error: UnicodeDecodeError) -> InputError:
    return InputError(place, f"not UTF-8: {error.reason}")


def _refuse_without_filter(columns: Any, file: str) -> None:
    if "filter" not in columns:
        raise InputError(file, f"there is no column 'filter', only {', '.join(map(repr, columns)) or 'none'}")
