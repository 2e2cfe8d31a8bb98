"""The languages filters are written in and converted to, with errors that name the place."""

from __future__ import annotations

import json
from enum import StrEnum

from fieldfare.cli.errors import InputError
from fieldfare.filters import Filter
from fieldfare.filters.dialects import Dialect, read

__all__ = ["Dialect", "Target", "parse", "render"]


class Target(StrEnum):
    """A language that filters are written in."""

    NATIVE = "native"
    CLOUDEVENTS = "cloudevents"
    RULER = "ruler"


def parse(written: object, dialect: Dialect, place: str = "") -> Filter:
    """The filter of a text or, in the JSON dialects, of a document; `place` is for the error message."""
    try:
        return read(written, dialect)
    except ValueError as error:
        raise InputError(place, error) from None


def render(wanted: Filter, target: Target, place: str = "") -> str:
    """The filter in another language, on one line."""
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
