"""Violations of the specification, and the name of an event in a trace."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

EventId: TypeAlias = tuple[str, int]
"""the publisher, and its count"""


class Violation(NamedTuple):
    """Something that must not be."""

    rule: str
    order: int
    """the record that shows it"""
    problem: str
