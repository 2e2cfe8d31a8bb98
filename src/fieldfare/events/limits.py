"""`Limits` for the size of events, and `EventError`, which names the field with a mistake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


class EventError(ValueError):
    """An event is not acceptable. `field` is the dotted path of the mistake ("" for the event as a whole)."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"field {field!r}: {problem}" if field else problem)


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest event for a decoder; a larger one is refused with an `EventError` naming the field."""

    bytes: int = 1 << 20
    """Bytes of an encoded event."""
    fields: int = 4096
    """Number of fields, nested fields included."""
    depth: int = 32
    """Levels of nested objects and lists."""
    string: int = 1 << 18
    """Characters of a string, or bytes of a byte value."""


DEFAULT_LIMITS: Final = Limits()
