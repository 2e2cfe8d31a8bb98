"""Languages of filters, read and written with errors that name the place in a file."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Any, cast

from fieldfare.cli.errors import InputError
from fieldfare.filters import Filter
from fieldfare.filters.dialects import Dialect, read
from fieldfare.filters.languages.sigma import rules
from fieldfare.filters.languages.sigma.rules import LOGSOURCE
from fieldfare.filters.languages.sigma.schema import LogSchema

__all__ = ["Dialect", "Target", "parse", "render"]


class Target(StrEnum):
    """A language that filters can be written in; CESQL can only be read. Correlations of Sigma become patterns."""

    NATIVE = "native"
    CLOUDEVENTS = "cloudevents"
    RULER = "ruler"
    PATTERNS = "patterns"


def parse(written: object, dialect: Dialect, place: str = "", schema: LogSchema = LOGSOURCE) -> Filter:
    """Return the filter of a text or, in a JSON dialect, of a document; `place` stands in the error message."""
    try:
        if dialect is Dialect.SIGMA:
            return rules.parse(cast(Any, written), schema)
        return read(written, dialect)
    except ValueError as error:
        raise InputError(place, error) from None


def render(wanted: Filter, target: Target, place: str = "") -> str:
    """Return the filter in another language, on one line."""
    try:
        match target:
            case Target.NATIVE:
                return str(wanted)
            case Target.CLOUDEVENTS:
                from fieldfare.filters.languages.subscriptions import documents

                return json.dumps(documents.render(wanted), ensure_ascii=False)
            case Target.RULER:
                from fieldfare.filters.languages.ruler import patterns

                return json.dumps(patterns.render(wanted), ensure_ascii=False)
            case Target.PATTERNS:
                raise ValueError("a filter looks at a single event: only correlations of Sigma become patterns")
    except ValueError as error:
        raise InputError(place, error) from None
