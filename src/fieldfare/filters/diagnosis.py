"""Diagnosis: the reason why an event matches a filter or does not, as a verdict on every constraint of every branch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fieldfare.events.event import fields_of
from fieldfare.events.values import MISSING, Kind, kind_of
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint, Mode
from fieldfare.filters.filter import Filter
from fieldfare.filters.literals import name
from fieldfare.filters.printer import render


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on a constraint, with the value of the event."""

    dimension: str
    """the field, or the expression over fields"""
    wanted: str
    actual: object
    """the value; `MISSING` if there is none, `UNCERTAIN` if computed from an interval"""
    ok: bool
    distance: float | None = field(default=None, compare=False)
    """distance of a number, or of a time in seconds, from the allowed values; None for values without a measure"""


@dataclass(frozen=True, slots=True)
class BranchReport:
    """The findings of a branch, which is a way to match the filter."""

    branch: str
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Tell whether the event satisfies the branch."""
        return all(finding.ok for finding in self.findings)

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The findings on constraints that the event does not satisfy."""
        return tuple(finding for finding in self.findings if not finding.ok)


def diagnose(filter: Filter, event: Mapping[str, object], mode: Mode = "overlaps") -> list[BranchReport]:
    """Return a report for each branch of the filter; the event matches exactly if some report is ok.

    >>> from fieldfare.filters import parse
    >>> [report] = diagnose(parse("price < 10 AND symbol = 'IBM'"), {"price": 12, "symbol": "IBM"})
    >>> [(finding.wanted, finding.actual, finding.distance) for finding in report.failed]
    [('price < 10', 12, 2.0)]
    """
    fields = fields_of(event)
    return [
        BranchReport(
            render([branch]),
            tuple(_finding(dimension, wanted, fields, mode) for dimension, wanted in branch.items()),
        )
        for branch in filter.branches
    ]


def _finding(dimension: Dimension, wanted: Constraint, fields: Mapping[str, object], mode: Mode) -> Finding:
    alone = Branch({dimension: wanted})
    if isinstance(dimension, str):
        text, actual = name(dimension), fields.get(dimension, MISSING)
    else:
        text, actual = dimension.text, dimension.evaluate(fields)
    ok = alone.matches(fields, mode)
    return Finding(text, render([alone]), actual, ok, 0.0 if ok else _distance(wanted, actual))


def _distance(wanted: Constraint, actual: object) -> float | None:
    """Return the distance from a value outside to the nearest end of the allowed values."""
    kind = kind_of(actual)
    if kind is Kind.NUMBER:
        return min((abs(float(end - actual)) for end, _ in wanted.values.numbers.cuts), default=None)
    if kind is Kind.TIME:
        return min((abs((end - actual).total_seconds()) for end, _ in wanted.values.times.cuts), default=None)
    return None
