"""`PipelineReport`: the state of a Spark pipeline, as the pipeline reports it to a node for the dashboard.

`Reports` keeps the last report of each pipeline.

A pipeline sends a whole report after every batch, so the node adds nothing up and keeps nothing on disk: the next
report makes a lost report good. Everything is bounded, and values are plain, so every accepted report can be shown.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

MOST_PIPELINES: Final = 32
KEPT: Final = 3600.0
"""Seconds after which a report is forgotten."""
MOST_BUSY: Final = 20
"""Largest number of subscriptions in a report."""
MOST_FIELDS: Final = 50
MOST_KINDS: Final = 16
MOST_TOP: Final = 10
"""Largest number of frequent values of a field."""
MOST_BINS: Final = 64
MOST_HISTORY: Final = 60
LONGEST_TEXT: Final = 200
"""Largest length of a name or a value in characters."""
LONGEST_ERROR: Final = 4000

Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 53)]  # beyond that a browser would round it
Amount: TypeAlias = Annotated[float, Meta(ge=0)]
Time: TypeAlias = Annotated[float, Meta(ge=0, le=1e11)]
"""Seconds since 1970."""
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)]
Text: TypeAlias = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Value: TypeAlias = Text | bool | int | float | None
"""A value of a field; values other than texts, numbers and Booleans come as texts."""


class Busy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A subscription with many matches."""

    subscription: Text
    owner: Text | None
    count: Count
    """Number of deliveries."""


class FieldReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Statistics of the values of a field."""

    name: Name
    kinds: Annotated[dict[Text, Count], Meta(max_length=MOST_KINDS)]
    """Number of values of each kind, such as `number`."""
    present: Annotated[float, Meta(ge=0, le=1)]
    """Share of events that have the field."""
    distinct: Count
    low: Value = None
    high: Value = None
    top: Annotated[tuple[tuple[Value, Count], ...], Meta(max_length=MOST_TOP)] = ()
    """Most frequent values, with their counts."""
    histogram: Annotated[tuple[tuple[float, float, Count], ...], Meta(max_length=MOST_BINS)] = ()
    """Bins of numbers: from, to, count."""


class PipelineReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The state of a pipeline at one moment."""

    name: Name
    state: Literal["running", "waiting", "ended", "failed"]
    batch: Count
    """Number of the last batch."""
    time: Time
    """Time of the report by the pipeline's clock."""
    events: Count = 0
    """Events since the start of the pipeline, as all counts."""
    deliveries: Count = 0
    quarantined: Count = 0
    """Records that were no events."""
    late: Count = 0
    """Events behind the watermark."""
    rate: Amount = 0.0
    """Events a second, over the last batch."""
    took: Amount = 0.0
    """Duration of the last batch in seconds."""
    snapshot: Count | None = None
    """Version of the matched subscriptions."""
    subscriptions: Count = 0
    busiest: Annotated[tuple[Busy, ...], Meta(max_length=MOST_BUSY)] = ()
    fields: Annotated[tuple[FieldReport, ...], Meta(max_length=MOST_FIELDS)] = ()
    history: Annotated[tuple[tuple[Time, Amount, Amount], ...], Meta(max_length=MOST_HISTORY)] = ()
    """Time, events a second, deliveries a second; the oldest first."""
    error: Annotated[str, Meta(max_length=LONGEST_ERROR)] | None = None


class Shown(msgspec.Struct, frozen=True):
    """A report with its age."""

    age: float
    """Seconds by the node's clock: the clock of a pipeline may be wrong."""
    report: PipelineReport


class _Kept(NamedTuple):
    at: float
    report: PipelineReport


class Reports:
    """The last report of each pipeline, kept for an hour.

    >>> reports = Reports()
    >>> reports.keep(PipelineReport("trades", "running", 7, 100.0), now=100.0)
    >>> [(one.report.name, one.report.batch, one.age) for one in reports.shown(now=102.5)]
    [('trades', 7, 2.5)]
    >>> reports.shown(now=100.0 + KEPT + 1)
    []
    """

    def __init__(self) -> None:
        self._last: dict[str, _Kept] = {}  # in the order of the last reports: the longest-silent pipeline is first

    def keep(self, report: PipelineReport, now: float) -> None:
        """Store a report in place of the pipeline's last one; beyond the limit the longest-silent one is dropped."""
        others = [one for one in self._fresh(now) if one.report.name != report.name]
        some = [*others, _Kept(now, report)][-MOST_PIPELINES:]
        self._last = {one.report.name: one for one in some}

    def shown(self, now: float) -> list[Shown]:
        """Return all reports with their ages, by name."""
        fresh = sorted(self._fresh(now), key=lambda one: one.report.name)
        return [Shown(round(max(0.0, now - at), 3), report) for at, report in fresh]

    def forget(self, name: str) -> bool:
        """Forget a pipeline; tell whether it was known."""
        return self._last.pop(name, None) is not None

    def _fresh(self, now: float) -> list[_Kept]:
        return [one for one in self._last.values() if now - one.at <= KEPT]
