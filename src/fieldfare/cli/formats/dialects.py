"""Languages of filters, read and written with errors that name the place in a file."""

from __future__ import annotations

import json
from enum import StrEnum

from fieldfare.cli.errors import InputError
from fieldfare.filters import Filter
from fieldfare.filters.dialects import Dialect, read

__all__ = ["Dialect", "Target", "parse", "render"]


class Target(StrEnum):
    """A language that filters can be written in; CESQL can only be read."""

    NATIVE = "native"
    CLOUDEVENTS = "cloudevents"
    RULER = "ruler"


def parse(written: object, dialect: Dialect, place: str = "") -> Filter:
    """Return the filter of a text or, in a JSON dialect, of a document; `place` stands in the error message."""
    try:
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
    except ValueError as error:
        raise InputError(place, error) from None
