"""Limits on the size of an event, and the error that names the wrong field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


class EventError(ValueError):
    """An event that cannot be accepted. `field` is the dotted path of the wrong field ("" for the whole event)."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"field {field!r}: {problem}" if field else problem)


@dataclass(frozen=True, slots=True)
class Limits:
    """The sizes that a decoder accepts; a larger event is refused with an `EventError` that names the field."""

    bytes: int = 1 << 20
    """encoded size of one event"""
    fields: int = 4096
    """number of fields, nested fields included"""
    depth: int = 32
    """nesting of objects and lists"""
    string: int = 1 << 18
    """length of one string or byte value"""


DEFAULT_LIMITS: Final = Limits()
