"""Dialects: the languages of filters by name. The module of a language is imported at first use."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, cast

from fieldfare.filters.filter import Filter
from fieldfare.filters.languages import cesql, native, ruler, sigma, subscriptions


class Dialect(StrEnum):
    """A language that filters are read from."""

    NATIVE = "native"
    CESQL = "cesql"
    CLOUDEVENTS = "cloudevents"
    RULER = "ruler"
    SIGMA = "sigma"


def read(written: object, dialect: Dialect) -> Filter:
    """Return the filter of a text or, in the JSON dialects, of a document; a ValueError gives problem and place.

    >>> read('{"price": [{"numeric": ["<", 5]}]}', Dialect.RULER)
    parse('ANY price < 5')
    """
    try:
        match dialect:
            case Dialect.NATIVE:
                return native.parse(_text(written, dialect))
            case Dialect.CESQL:
                return cesql.parse(_text(written, dialect))
            case Dialect.CLOUDEVENTS:
                return subscriptions.parse(_document(written))
            case Dialect.RULER:
                return ruler.parse(cast(Any, written))
            case Dialect.SIGMA:
                return sigma.parse(cast(Any, written))
    except ValueError as error:
        raise ValueError(_in_a_line(str(error))) from None


def _in_a_line(problem: str) -> str:
    """Drop the line number from a problem in the first line: most filters have a single line."""
    return problem.removeprefix("line 1, ").replace("(line 1, column ", "(column ", 1)


def _text(written: object, dialect: Dialect) -> str:
    if isinstance(written, str):
        return written
    raise ValueError(f"a filter in the dialect {dialect} is a text, not {json.dumps(written)[:40]}")


def _document(written: object) -> Any:
    if not isinstance(written, str):
        return written
    try:
        return json.loads(written)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
