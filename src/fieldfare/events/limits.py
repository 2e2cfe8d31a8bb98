"""How large an event may be, and the one error that says which field is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


class EventError(ValueError):
    """An event that cannot be accepted. `field` is the dotted path of the culprit ("" for the event as a whole)."""

    def __init__(self, field: str, problem: str) -> None:
        self.field = field
        self.problem = problem
        super().__init__(f"field {field!r}: {problem}" if field else problem)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a decoder accepts; anything beyond is refused with an `EventError` naming the field."""

    bytes: int = 1 << 20
    """encoded size of one event"""
    fields: int = 4096
    """number of fields, counting every nested one"""
    depth: int = 32
    """nesting of objects and lists"""
    string: int = 1 << 18
    """length of one string or byte value"""


DEFAULT_LIMITS: Final = Limits()
