"""`Counters`: what a node has done so far, in numbers that only grow."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class LinkTraffic:
    """On one link."""

    events_out: int = 0
    events_in: int = 0
    tells_out: int = 0
    tells_in: int = 0
    bytes_out: int = 0
    bytes_in: int = 0


@dataclass(slots=True)
class Counters:
    """Of one node, since it started."""

    started: float
    events_in: int = 0
    """from publishers"""
    deliveries: int = 0
    """to clients"""
    refused: int = 0
    frames_in: int = 0
    frames_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    busy: float = 0.0
    """seconds in which the broker worked"""
    links: dict[str, LinkTraffic] = field(default_factory=dict)
