"""Violations of the specification, and the name of an event in a trace."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

EventId: TypeAlias = tuple[str, int]
"""the publisher, and its count"""


class Violation(NamedTuple):
    """A violation of the specification, with the record showing the problem."""

    rule: str
    order: int
    """the number of the record showing the problem"""
    problem: str
