"""Tables from files: filters with the interfaces that they came from.

A line is a filter, `INTERFACE: FILTER`, `INTERFACE<TAB>FILTER`, or a JSON object with `filter` and, if known,
`interface`, a name or a list of names; blank lines and lines that start with `#` are skipped. If filters are JSON, as
in some dialects, the name of the file must end in `.jsonl` for objects to be read as lines of a table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from fieldfare.cli.errors import InputError
from fieldfare.cli.formats.dialects import Dialect, parse
from fieldfare.cli.formats.inputs import Source, sample, source_of
from fieldfare.filters import Filter

Pair: TypeAlias = tuple[Filter, str | None]

_NAMED: Final = re.compile(r"(?P<name>[^\s'\"():]+):\s+(?P<filter>.+)")
"""no filter begins with a word and a colon"""
_TEXTS: Final = (Dialect.NATIVE, Dialect.CESQL)


def table_source(path: str) -> Source:
    """Return the source of a path; `sample:filters.txt` is the sample in the package."""
    return sample(path.removeprefix("sample:")) if path == "sample:filters.txt" else source_of(path)


def read_table(source: Source, dialect: Dialect) -> list[Pair]:
    """Return the filters of a file in their order, once for each interface."""
    with source.open() as stream:
        lines = list(stream)
    objects = source.suffix in ("jsonl", "ndjson", "json")
    pairs = [
        pair
        for number, raw in enumerate(lines, 1)
        for pair in _pairs(raw, f"{source.name}:{number}", dialect, objects=objects)
    ]
    if not pairs:
        raise InputError(source.name, "there is no filter in it")
    return pairs


def _pairs(raw: bytes, place: str, dialect: Dialect, *, objects: bool) -> Iterator[Pair]:
    try:
        line = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise InputError(place, f"not UTF-8: {error.reason}") from None
    if not line or line.startswith("#"):
        return
    if objects or (dialect in _TEXTS and line.startswith("{")):
        yield from _from_object(line, place, dialect)
    elif dialect not in _TEXTS and line.startswith(("{", "[")):
        yield parse(line, dialect, place), None
    elif "\t" in line:
        name, _, text = line.partition("\t")
        yield parse(text.strip(), dialect, place), name.strip() or None
    elif named := _NAMED.fullmatch(line):
        yield parse(named["filter"], dialect, place), named["name"]
    else:
        yield parse(line, dialect, place), None


def _from_object(line: str, place: str, dialect: Dialect) -> Iterator[Pair]:
    try:
        tree = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(place, f"not JSON: {error.msg} (column {error.colno})") from None
    if not isinstance(tree, dict) or "filter" not in tree:
        raise InputError(place, 'a line is an object such as {"filter": "price < 5", "interface": "north"}')
    given = tree.get("interface", tree.get("id"))
    names = given if isinstance(given, list) else [given]
    try:
        language = Dialect(tree.get("dialect", dialect))
    except ValueError:
        raise InputError(place, f"the dialect is none of {', '.join(Dialect)}: {tree['dialect']!r}") from None
    wanted = parse(tree["filter"], language, place)
    yield from ((wanted, None if name is None else str(name)) for name in names or [None])
