"""The load on a server: filters of many subscribers, events, and the expected deliveries.

Everything comes from a seed, in one of four shapes:

- `filters`: conjunctions of two or three equalities, because a headers exchange can do no more. Filters and events come
  in groups: an event of a group has the values that all filters of the group compare with, and any of three pairs of
  fields names the group, so an event matches the filters of its own group and no other. The filters of a group differ,
  and no single field identifies a group.
- `one`: each subscriber has a topic of its own, and an event has one topic.
- `fanout`: all subscribers have the same topic, the topic of every event.
- `nested`: as `one`, and each event has a feature of GeoJSON too, 430 bytes of nested fields that no filter compares.

The module also has the `Result` that every contender reports, and reads CPU time and memory of a server from `/proc`.
"""

from __future__ import annotations

import heapq
import math
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np

from fieldfare_lab.bench.workloads import generate

PAIRS: Final = (("symbol", "lot"), ("sector", "tier"), ("region", "desk"))
"""each pair of a string and an integer names a group"""
FIELDS: Final = tuple(field for pair in PAIRS for field in pair)
"""the fields that filters compare"""
_CHOICES: Final = tuple(
    fields
    for size in (2, 3)
    for fields in combinations(FIELDS, size)
    if any(set(pair) <= set(fields) for pair in PAIRS)
)
_NOTES: Final = ("opened", "amended", "filled in part", "filled", "cancelled by the client", "expired")

_FEATURES: Final = 200

Value = str | int
Shape = Literal["one", "fanout", "filters", "nested"]
_LOADS: Final[dict[Shape, str]] = {
    "one": "one of {:,} topics",
    "fanout": "fan-out to {:,}",
    "filters": "{:,} filters",
    "nested": "nested, one of {:,} topics",
}


class SubscriberFilter(NamedTuple):
    """A filter with the number of its subscriber."""

    subscriber: int
    equalities: tuple[tuple[str, Value], ...]

    @property
    def text(self) -> str:
        """Return the filter in Fieldfare's filter language.

        >>> SubscriberFilter(0, (("symbol", "v17"), ("lot", 3))).text
        "symbol = 'v17' AND lot = 3"
        """
        return " AND ".join(
            f"{field} = '{value}'" if isinstance(value, str) else f"{field} = {value}"
            for field, value in self.equalities
        )

    @property
    def arguments(self) -> dict[str, Value]:
        """Return the filter as the arguments of a binding to RabbitMQ's headers exchange.

        >>> SubscriberFilter(0, (("symbol", "v17"), ("lot", 3))).arguments
        {'x-match': 'all', 'symbol': 'v17', 'lot': 3}
        """
        return {"x-match": "all", **dict(self.equalities)}


class LoadEvent(NamedTuple):
    """An event with the subscribers that must receive the event, each once."""

    number: int
    compared: dict[str, Value]
    """the fields that filters compare"""
    others: dict[str, Any]
    """fields that no filter compares, the number of the event among them"""
    receivers: tuple[int, ...]

    @property
    def fields(self) -> dict[str, Any]:
        """Return compared and other fields together."""
        return {**self.compared, **self.others}


class Load(msgspec.Struct, frozen=True):
    """Filters of many subscribers, in groups; every event matches all filters of a group, `matches` in number."""

    shape: Shape
    seed: int
    subscribers: int
    matches: int
    filters: tuple[SubscriberFilter, ...]
    groups: tuple[dict[str, Value], ...]
    """values of the compared fields in the events of each group"""
    receivers: tuple[tuple[int, ...], ...]
    """subscribers that must receive the events of each group"""


def make(seed: int, *, filters: int = 10_000, subscribers: int = 100, matches: int = 10) -> Load:
    """Make the load of a seed.

    The filters that an event matches belong to different subscribers, if there are enough subscribers; all subscribers
    have about equally many filters.

    >>> load = make(1, filters=4, subscribers=3, matches=2)
    >>> [(filter.subscriber, filter.text) for filter in load.filters[:2]]
    [(2, "symbol = 'v0' AND sector = 's0' AND tier = 1"), (1, "symbol = 'v0' AND lot = 0")]
    >>> load.groups[0]
    {'symbol': 'v0', 'lot': 0, 'sector': 's0', 'tier': 1, 'region': 'r0', 'desk': 1}
    """
    if not 1 <= matches <= len(_CHOICES):
        raise ValueError(f"an event can match 1 to {len(_CHOICES)} filters, not {matches}")
    if filters < matches or filters % matches:
        raise ValueError(f"give a multiple of {matches} filters, as each event matches {matches}; {filters} is none")
    if subscribers < 1:
        raise ValueError(f"give at least one subscriber, not {subscribers}")
    chance = random.Random(seed)
    count = filters // matches
    side = max(2, math.isqrt(count - 1) + 1)
    orders = [chance.sample(range(count), count) for _ in PAIRS]
    groups: list[dict[str, Value]] = []
    for number in range(count):
        group: dict[str, Value] = {}
        for (text, integer), order, letter in zip(PAIRS, orders, "vsr", strict=True):
            high, low = divmod(order[number], side)
            group |= {text: f"{letter}{high}", integer: low}
        groups.append(group)
    bound: list[SubscriberFilter] = []
    held = [0] * subscribers
    for group in groups:
        drawn = [(had, chance.random(), subscriber) for subscriber, had in enumerate(held)]
        fewest = [subscriber for _, _, subscriber in heapq.nsmallest(matches, drawn)]
        for place, fields in enumerate(chance.sample(_CHOICES, matches)):
            subscriber = fewest[place % len(fewest)]
            held[subscriber] += 1
            bound.append(SubscriberFilter(subscriber, tuple((field, group[field]) for field in fields)))
    receivers = tuple(
        tuple(sorted({filter.subscriber for filter in bound[start : start + matches]}))
        for start in range(0, filters, matches)
    )
    return Load("filters", seed, subscribers, matches, tuple(bound), tuple(groups), receivers)


def topics(seed: int, shape: Shape, subscribers: int = 100) -> Load:
    """Make a load with a topic for each subscriber (`one`, `nested`), or the same topic for all (`fanout`).

    >>> [filter.text for filter in topics(1, "one", subscribers=2).filters]
    ["topic = 't0'", "topic = 't1'"]
    >>> topics(1, "fanout", subscribers=2).receivers
    ((0, 1),)
    """
    if subscribers < 1:
        raise ValueError(f"give at least one subscriber, not {subscribers}")
    everybody = tuple(range(subscribers))
    receivers = (everybody,) if shape == "fanout" else tuple((one,) for one in everybody)
    groups: tuple[dict[str, Value], ...] = tuple({"topic": f"t{number}"} for number in range(len(receivers)))
    bound = [
        SubscriberFilter(one, tuple(group.items())) for group, who in zip(groups, receivers, strict=True) for one in who
    ]
    return Load(shape, seed, subscribers, len(receivers[0]), tuple(bound), groups, receivers)


def topic_of(compared: Mapping[str, Value], separator: str, wildcard: str = "") -> str:
    """Return the compared fields of an event or filter as a topic with a level for each field.

    A field without a value is a wildcard, which a server of topics has instead of a filter's missing field.

    >>> topic_of({"topic": "t3"}, "/"), topic_of({"symbol": "v17", "lot": 3}, ".", "*")
    ('t3', 'v17.3.*.*.*.*')
    """
    fields = ("topic",) if "topic" in compared else FIELDS
    return separator.join(str(compared.get(field, wildcard)) for field in fields)


def events(load: Load, count: int) -> Iterator[LoadEvent]:
    """Return the first `count` events of a load; a larger count continues the same sequence."""
    chance = random.Random(load.seed)
    features = generate("lots", 0, _FEATURES).events if load.shape == "nested" else []
    for number in range(count):
        group = chance.randrange(len(load.groups))
        others: dict[str, Any] = {
            "number": number,
            "price": round(chance.uniform(1, 500), 2),
            "quantity": chance.randrange(1, 10_000),
            "note": chance.choice(_NOTES),
        }
        if features:
            others["feature"] = features[number % _FEATURES]
        yield LoadEvent(number, load.groups[group], others, load.receivers[group])


def expected(load: Load, count: int) -> list[list[int]]:
    """Return the oracle: for each subscriber, the numbers of the due events among the first `count`, in order."""
    due: list[list[int]] = [[] for _ in range(load.subscribers)]
    for event in events(load, count):
        for subscriber in event.receivers:
            due[subscriber].append(event.number)
    return due


def is_correct(load: Load, count: int, got: Sequence[Iterable[int]]) -> bool:
    """Tell whether every subscriber received exactly the due events, each once, in any order."""
    return [sorted(numbers) for numbers in got] == expected(load, count)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The rates, latencies and costs of a contender under a load."""

    contender: str
    shape: Shape = "filters"
    filters: int
    events: int
    """events published at full speed"""
    deliveries: int
    seconds: float
    """from the first publication to the last delivery"""
    cpu_seconds: float
    """CPU time of the server during `seconds`"""
    client_cpu_seconds: float
    """CPU time of publishers and subscribers during `seconds`"""
    other_cpu_seconds: float
    """CPU time of all other processes during `seconds`; if large, trust `events_per_cpu_second` more than the rate"""
    idle_mb: float
    """memory of the server before the first filter"""
    busy_mb: float
    """memory of the server after the events"""
    paced: float | None = None
    """events a second during the measurement of latency"""
    p50_ms: float | None = None
    """from the time at which an event was due to each of its deliveries"""
    p99_ms: float | None = None
    slow: float | None = None
    """events a second during the second measurement of latency, at a pace that all contenders can keep"""
    slow_p50_ms: float | None = None
    slow_p99_ms: float | None = None
    correct: bool
    """whether every subscriber received exactly the due events, at full speed and paced"""

    @property
    def load(self) -> str:
        """Return the load in words: `10,000 filters`, `one of 100 topics` or `fan-out to 100`."""
        return _LOADS[self.shape].format(self.filters)

    @property
    def events_per_second(self) -> float:
        """Return the rate at which the server accepted and delivered events."""
        return self.events / self.seconds

    @property
    def deliveries_per_second(self) -> float:
        """Return the rate of deliveries; an event counts for each subscriber that receives the event."""
        return self.deliveries / self.seconds

    @property
    def cores(self) -> float:
        """Return the number of cores that the server kept busy."""
        return self.cpu_seconds / self.seconds

    @property
    def events_per_cpu_second(self) -> float:
        """Return the events for each CPU second of the server; infinite if the CPU time is below the clock's tick."""
        return self.events / self.cpu_seconds if self.cpu_seconds else math.inf


def percentiles(seconds: Sequence[float]) -> tuple[float, float] | None:
    """Return the 50th and the 99th percentile in milliseconds, or None for an empty list.

    >>> percentiles([0.001, 0.002, 0.003])
    (2.0, 2.98)
    """
    if not len(seconds):
        return None
    p50, p99 = np.percentile(np.asarray(seconds) * 1000, (50, 99)).tolist()
    return round(p50, 3), round(p99, 3)


def family(pid: int) -> list[int]:
    """Return the ids of a process and of all its living descendants."""
    children: dict[int, list[int]] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and (stat := _stat(int(directory.name))):
            children.setdefault(int(stat[1]), []).append(int(directory.name))
    found = [pid]
    for one in found:
        found += children.get(one, ())
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the CPU time of processes, user and system together; a process that has ended counts 0."""
    ticks = sum(int(stat[11]) + int(stat[12]) for pid in pids if (stat := _stat(pid)))
    return ticks / os.sysconf("SC_CLK_TCK")


def machine_cpu_seconds() -> float:
    """Return the CPU time of all processes of the machine, stolen time of a virtual machine included."""
    line = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    user, nice, system, _idle, _waiting, *interrupts_and_stolen = map(int, line.split()[1:9])
    return (user + nice + system + sum(interrupts_and_stolen)) / os.sysconf("SC_CLK_TCK")


def memory_mb(pids: Iterable[int]) -> float:
    """Return the resident memory of processes in megabytes; shared pages count for each process."""
    pages = sum(int(stat[21]) for pid in pids if (stat := _stat(pid)))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def load_of(result: Result) -> str:
    """Return the cores that server, clients and others kept busy, as text: did the server limit the rate?"""
    clients, others = (spent / result.seconds for spent in (result.client_cpu_seconds, result.other_cpu_seconds))
    return f"server {result.cores:.2f}, clients {clients:.2f}, others {others:.2f} of {os.cpu_count()} cores"


def _stat(pid: int) -> list[str]:
    """The fields of `/proc/PID/stat` after the name, which may hold spaces; empty if the process has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
