"""Reports of a pipeline after each micro-batch, for a file, a node's dashboard, Prometheus and the terminal.

Counts go on over restarts. A batch that runs again after a crash is counted once, by its number.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from urllib.request import Request, urlopen

import msgspec
from msgspec.structs import replace
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.node.pipeline_reports import (
    LONGEST_ERROR,
    LONGEST_TEXT,
    MOST_BUSY,
    MOST_FIELDS,
    MOST_HISTORY,
    MOST_TOP,
    Busy,
    FieldReport,
    PipelineReport,
    Value,
)
from fieldfare.pipeline.job.config import Pipeline
from fieldfare.pipeline.job.plan import Tables
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.statistics.attributes import EventStatistics, counted, known
from fieldfare.pipeline.statistics.sketches import Count

FILE: Final = "report.json"
_TIMEOUT: Final = 5
_SECONDS: Final = 5.0
"""seconds between two counts of values"""


def last(state: Path) -> PipelineReport | None:
    """Read the last report of a pipeline; None without a readable report."""
    try:
        return msgspec.json.decode((state / FILE).read_bytes(), type=PipelineReport)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


class Reporter:
    """The reporter makes the reports of a pipeline, and writes and sends them."""

    def __init__(
        self, pipeline: Pipeline, state: Path, subscriptions: str | Path | None, told: Callable[[PipelineReport], None]
    ) -> None:
        self._pipeline = pipeline
        self._catalogue = subscriptions
        self._turn = threading.Lock()  # batches are told by Spark's thread, all else by ours
        self._state = state
        self._told = told
        self._report = last(state) or PipelineReport(pipeline.name, "waiting", 0, time.time())
        self._first = not (state / FILE).exists()
        self._busy: Counter[tuple[str, str | None]] = Counter(
            {(one.subscription, one.owner): one.count for one in self._report.busiest}
        )
        self._counted = 0.0
        self._count_of_events = Count()
        self._metrics = _Metrics(pipeline.name, pipeline.report.metrics) if pipeline.report.metrics else None

    def batch(self, number: int, tables: Tables, took: float) -> None:
        """Report a finished micro-batch."""
        before = self._report
        if not self._first and number <= before.batch:
            return  # done again
        self._first = False
        counts = tables.counted().first()
        assert counts is not None
        now = time.time()
        if not (counts.events or counts.late or counts.quarantined):  # Spark tidies up its state in such a batch
            self._report = replace(before, batch=number, time=now)
            return
        seconds = max(took, 1e-3)
        self._count(tables)
        self._tell(
            replace(
                before,
                state="running",
                batch=number,
                time=now,
                events=before.events + counts.events,
                deliveries=before.deliveries + counts.deliveries,
                quarantined=before.quarantined + counts.quarantined,
                late=before.late + counts.late,
                rate=counts.events / seconds,
                took=took,
                snapshot=counts.snapshot or before.snapshot,
                subscriptions=self._subscriptions(counts.snapshot, before),
                busiest=tuple(
                    Busy(id[:LONGEST_TEXT], owner and owner[:LONGEST_TEXT], count)
                    for (id, owner), count in sorted(self._busy.items(), key=_busier)[:MOST_BUSY]
                ),
                fields=self._fields(tables, now),
                history=(*before.history, (now, counts.events / seconds, counts.deliveries / seconds))[-MOST_HISTORY:],
                error=None,
            )
        )

    def waiting(self) -> None:
        """Report that the pipeline waits for events, if it ran before."""
        if self._report.state == "running" and time.time() - self._report.time > _TIMEOUT:
            self._tell(replace(self._report, state="waiting"))

    def ended(self) -> None:
        """Report that the pipeline was stopped, or has processed all events."""
        self._tell(replace(self._report, state="ended", time=time.time()))

    def failed(self, problem: str) -> None:
        """Report that the pipeline stopped because of an error."""
        self._tell(replace(self._report, state="failed", time=time.time(), error=problem[:LONGEST_ERROR]))

    def _tell(self, report: PipelineReport) -> None:
        with self._turn:
            self._write(report)

    def _write(self, report: PipelineReport) -> None:
        self._report = report
        draft = self._state / f".{FILE}"
        draft.write_bytes(msgspec.json.encode(report))
        draft.replace(self._state / FILE)
        if self._metrics is not None:
            self._metrics.show(report)
        self._told(report)
        if self._pipeline.report.node:
            _put(self._pipeline.report.node, self._pipeline.report.token, report)

    def _count(self, tables: Tables) -> None:
        """Count deliveries by subscription; exact for subscriptions that were ever among the busiest of a batch."""
        if tables.names is None:
            return
        got = tables.matched.counts().select("subscription", "owner", "events")
        most = got.orderBy(F.desc("events")).limit(5 * MOST_BUSY)
        for subscription, owner, count in most.collect():
            self._busy[str(subscription), owner] += count
        self._busy = Counter(dict(self._busy.most_common(50 * MOST_BUSY)))

    def _fields(self, tables: Tables, now: float) -> tuple[FieldReport, ...]:
        """Count the values of fields since the start, every few seconds, and only for a dashboard."""
        wanted = self._pipeline.report.node and self._pipeline.report.statistics
        if not wanted or now - self._counted < _SECONDS:
            return self._report.fields
        self._counted = now
        self._count_of_events |= counted(tables.events)
        return field_reports(known(self._count_of_events))

    def _subscriptions(self, version: int | None, before: PipelineReport) -> int:
        if version is None or self._catalogue is None:
            return before.subscriptions
        try:
            return catalogue.opened(str(self._catalogue), version).about.count
        except catalogue.SubscriptionError:  # forgotten since; the next batch has a newer one
            return before.subscriptions


def _busier(one: tuple[tuple[str, str | None], int]) -> tuple[int, str]:
    (subscription, _), count = one
    return -count, subscription


def field_reports(found: EventStatistics) -> tuple[FieldReport, ...]:
    """Return statistics as the dashboard shows them."""
    return tuple(
        FieldReport(
            path[:LONGEST_TEXT],
            {one.kind.value: one.tally.present},
            one.presence,
            one.distinct,
            _shown(one.tally.low),
            _shown(one.tally.high),
            tuple((_shown(value), count) for value, count in one.top(MOST_TOP)),
            tuple(one.histogram()),
        )
        for path, one in sorted(found.attributes.items())[:MOST_FIELDS]
    )


def _shown(value: object) -> Value:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    return (value if isinstance(value, str) else str(value))[:LONGEST_TEXT]


def _put(node: str, token: str, report: PipelineReport) -> None:
    """Send a report to a node; a node that is away misses the report."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    address = f"{node.rstrip('/')}/admin/pipelines/{quote(report.name, safe='')}"
    try:
        request = Request(address, msgspec.json.encode(report), headers, method="PUT")  # noqa: S310 - http(s) only
        urlopen(request, timeout=_TIMEOUT).close()  # noqa: S310
    except OSError:
        return


class _Metrics:
    """Gauges of the last report, served to Prometheus."""

    def __init__(self, name: str, port: int) -> None:
        from prometheus_client import CollectorRegistry, Gauge, start_http_server  # noqa: PLC0415 - only if asked for

        registry = CollectorRegistry()
        labels = {"pipeline": name}
        self._gauges: dict[str, Any] = {
            key: Gauge(f"fieldfare_pipeline_{key}", about, list(labels), registry=registry).labels(**labels)
            for key, about in _GAUGES.items()
        }
        start_http_server(port, addr="127.0.0.1", registry=registry)

    def show(self, report: PipelineReport) -> None:
        """Set the gauges to the figures of a report."""
        for key, gauge in self._gauges.items():
            gauge.set(getattr(report, key) or 0)


_GAUGES: Final = {
    "events": "events that came in time, since the pipeline first ran",
    "deliveries": "matches of events and subscriptions",
    "quarantined": "records that were no events",
    "late": "events that came too late",
    "batch": "the number of the last micro-batch",
    "took": "seconds of the last micro-batch",
    "rate": "events a second in the last micro-batch",
    "snapshot": "the version of the subscriptions",
    "subscriptions": "how many there are in it",
    "time": "when the last report was made, in seconds since 1970",
}
