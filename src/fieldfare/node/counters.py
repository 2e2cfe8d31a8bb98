"""`Counters`: totals of a node's work since the start, which only grow."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class LinkCounters:
    """Totals of a link: events, filter updates (`tells`) and bytes in both directions.

    The names are keys of `GET /admin/links` and parts of metrics, and must not change.
    """

    events_out: int = 0
    events_in: int = 0
    tells_out: int = 0
    tells_in: int = 0
    bytes_out: int = 0
    bytes_in: int = 0


@dataclass(slots=True)
class Counters:
    """Totals of a node since the start, for metrics and the dashboard."""

    started: float
    """Time of the start, by the wall clock."""
    events_in: int = 0
    """Events that publishers sent."""
    deliveries: int = 0
    """Deliveries sent to clients."""
    refused: int = 0
    """Requests of clients that were refused."""
    frames_in: int = 0
    frames_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    busy: float = 0.0
    """Seconds in which the broker worked."""
    links: dict[str, LinkCounters] = field(default_factory=dict)
    """By neighbour."""
