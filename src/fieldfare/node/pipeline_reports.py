"""`PipelineReport`: the state of a Spark pipeline, as the pipeline reports it to a node for the dashboard.

`Reports` keeps the last report of each pipeline.

A pipeline sends a whole report after every batch, so the node adds nothing up and keeps nothing on disk: a report that
is lost is made good by the next. All of it is bounded, and values are plain ones, so whatever was taken can be shown.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

MOST_PIPELINES: Final = 32
KEPT: Final = 3600.0
"""seconds after which a report is forgotten"""
MOST_BUSY: Final = 20
"""subscriptions that are named in a report"""
MOST_FIELDS: Final = 50
MOST_KINDS: Final = 16
MOST_TOP: Final = 10
"""values of a field that are named"""
MOST_BINS: Final = 64
MOST_HISTORY: Final = 60
LONGEST_TEXT: Final = 200
"""characters of a name or a value"""
LONGEST_ERROR: Final = 4000

Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 53)]  # beyond that a browser would round it
Amount: TypeAlias = Annotated[float, Meta(ge=0)]
Time: TypeAlias = Annotated[float, Meta(ge=0, le=1e11)]
"""seconds since 1970"""
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)]
Text: TypeAlias = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Value: TypeAlias = Text | bool | int | float | None
"""a value of a field; one that is neither text, number nor truth comes as text"""


class Busy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A subscription that much was matched for."""

    subscription: Text
    owner: Text | None
    count: Count
    """deliveries"""


class FieldReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the values of a field are."""

    name: Name
    kinds: Annotated[dict[Text, Count], Meta(max_length=MOST_KINDS)]
    """how many are of each kind, such as `number`"""
    present: Annotated[float, Meta(ge=0, le=1)]
    """the share of events that have it"""
    distinct: Count
    low: Value = None
    high: Value = None
    top: Annotated[tuple[tuple[Value, Count], ...], Meta(max_length=MOST_TOP)] = ()
    """the most frequent ones, with how often they came"""
    histogram: Annotated[tuple[tuple[float, float, Count], ...], Meta(max_length=MOST_BINS)] = ()
    """of numbers: from, to, how many"""


class PipelineReport(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a pipeline does."""

    name: Name
    state: Literal["running", "waiting", "ended", "failed"]
    batch: Count
    """the number of the last one"""
    time: Time
    """by the pipeline's clock, when this was so"""
    events: Count = 0
    """since it started, as all counts"""
    deliveries: Count = 0
    quarantined: Count = 0
    """records that were no events"""
    late: Count = 0
    """events that came behind the watermark"""
    rate: Amount = 0.0
    """events a second, over the last batch"""
    took: Amount = 0.0
    """seconds of the last batch"""
    snapshot: Count | None = None
    """the version of the subscriptions that it matches"""
    subscriptions: Count = 0
    busiest: Annotated[tuple[Busy, ...], Meta(max_length=MOST_BUSY)] = ()
    fields: Annotated[tuple[FieldReport, ...], Meta(max_length=MOST_FIELDS)] = ()
    history: Annotated[tuple[tuple[Time, Amount, Amount], ...], Meta(max_length=MOST_HISTORY)] = ()
    """time, events a second, deliveries a second; the oldest first"""
    error: Annotated[str, Meta(max_length=LONGEST_ERROR)] | None = None


class Shown(msgspec.Struct, frozen=True):
    """A report, and how long ago it came."""

    age: float
    """seconds by the node's clock: that of a pipeline may go wrong"""
    report: PipelineReport


class _Kept(NamedTuple):
    at: float
    report: PipelineReport


class Reports:
    """The last report of each pipeline, for an hour.

    >>> reports = Reports()
    >>> reports.keep(PipelineReport("trades", "running", 7, 100.0), now=100.0)
    >>> [(one.report.name, one.report.batch, one.age) for one in reports.shown(now=102.5)]
    [('trades', 7, 2.5)]
    >>> reports.shown(now=100.0 + KEPT + 1)
    []
    """

    def __init__(self) -> None:
        self._last: dict[str, _Kept] = {}  # the one that was silent longest is the first

    def keep(self, report: PipelineReport, now: float) -> None:
        """Take a report instead of the last one of its pipeline. If there are too many, the most silent one goes."""
        others = [one for one in self._fresh(now) if one.report.name != report.name]
        some = [*others, _Kept(now, report)][-MOST_PIPELINES:]
        self._last = {one.report.name: one for one in some}

    def shown(self, now: float) -> list[Shown]:
        """All of them, by name."""
        fresh = sorted(self._fresh(now), key=lambda one: one.report.name)
        return [Shown(round(max(0.0, now - at), 3), report) for at, report in fresh]

    def forget(self, name: str) -> bool:
        """Forget a pipeline; says whether it was known."""
        return self._last.pop(name, None) is not None

    def _fresh(self, now: float) -> list[_Kept]:
        return [one for one in self._last.values() if now - one.at <= KEPT]
