"""The load on one server: filters of many subscribers, events, and who must get which.

All of it comes from a seed. Filters are conjunctions of two or three equalities, as that is all a headers exchange can
do. Filters and events come in groups: an event of a group has the values that all filters of the group ask for, and any
of three pairs of fields names the group, so an event matches the filters of its own group and no other. The filters of
a group differ, and no single field gives a group away.

Here too is what every contender reports, and how the CPU and the memory of a server are read.
"""

from __future__ import annotations

import heapq
import math
import os
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

PAIRS: Final = (("symbol", "lot"), ("sector", "tier"), ("region", "desk"))
"""each pair of a string and an integer names a group"""
FIELDS: Final = tuple(field for pair in PAIRS for field in pair)
"""what filters ask for"""
_CHOICES: Final = tuple(
    fields
    for size in (2, 3)
    for fields in combinations(FIELDS, size)
    if any(set(pair) <= set(fields) for pair in PAIRS)
)
_NOTES: Final = ("opened", "amended", "filled in part", "filled", "cancelled by the client", "expired")

Value = str | int


class Wish(NamedTuple):
    """A filter and the number of the subscriber that has it."""

    subscriber: int
    equalities: tuple[tuple[str, Value], ...]

    @property
    def text(self) -> str:
        """In the native language.

        >>> Wish(0, (("symbol", "v17"), ("lot", 3))).text
        "symbol = 'v17' AND lot = 3"
        """
        return " AND ".join(
            f"{field} = '{value}'" if isinstance(value, str) else f"{field} = {value}"
            for field, value in self.equalities
        )

    @property
    def arguments(self) -> dict[str, Value]:
        """As the arguments of a binding to a headers exchange.

        >>> Wish(0, (("symbol", "v17"), ("lot", 3))).arguments
        {'x-match': 'all', 'symbol': 'v17', 'lot': 3}
        """
        return {"x-match": "all", **dict(self.equalities)}


class Said(NamedTuple):
    """An event and the subscribers that must get it, each once."""

    number: int
    asked: dict[str, Value]
    """what filters may ask for"""
    more: dict[str, str | int | float]
    """fields that no filter asks for, the number of the event among them"""
    receivers: tuple[int, ...]

    @property
    def fields(self) -> dict[str, str | int | float]:
        """All fields."""
        return {**self.asked, **self.more}


class Load(msgspec.Struct, frozen=True):
    """Filters of so many subscribers, in groups; every event matches as many filters as a group has."""

    seed: int
    subscribers: int
    matches: int
    wishes: tuple[Wish, ...]
    groups: tuple[dict[str, Value], ...]
    """what the events of a group have in the fields that filters ask for"""
    receivers: tuple[tuple[int, ...], ...]
    """of the events of each group"""


def make(seed: int, *, filters: int = 10_000, subscribers: int = 100, matches: int = 10) -> Load:
    """The load of that seed.

    The filters that an event matches have different subscribers if there are as many, and all subscribers have about
    equally many.

    >>> load = make(1, filters=4, subscribers=3, matches=2)
    >>> [(wish.subscriber, wish.text) for wish in load.wishes[:2]]
    [(2, "symbol = 'v0' AND sector = 's0' AND tier = 1"), (1, "symbol = 'v0' AND lot = 0")]
    >>> load.groups[0]
    {'symbol': 'v0', 'lot': 0, 'sector': 's0', 'tier': 1, 'region': 'r0', 'desk': 1}
    """
    if not 1 <= matches <= len(_CHOICES):
        raise ValueError(f"an event can match 1 to {len(_CHOICES)} filters of this load, not {matches}")
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
    wishes: list[Wish] = []
    held = [0] * subscribers
    for group in groups:
        drawn = [(had, chance.random(), subscriber) for subscriber, had in enumerate(held)]
        fewest = [subscriber for _, _, subscriber in heapq.nsmallest(matches, drawn)]
        for place, fields in enumerate(chance.sample(_CHOICES, matches)):
            subscriber = fewest[place % len(fewest)]
            held[subscriber] += 1
            wishes.append(Wish(subscriber, tuple((field, group[field]) for field in fields)))
    receivers = tuple(
        tuple(sorted({wish.subscriber for wish in wishes[start : start + matches]}))
        for start in range(0, filters, matches)
    )
    return Load(seed, subscribers, matches, tuple(wishes), tuple(groups), receivers)


def events(load: Load, count: int) -> Iterator[Said]:
    """The first events of a load: asked for more, it gives the same ones and then others."""
    chance = random.Random(load.seed)
    for number in range(count):
        group = chance.randrange(len(load.groups))
        more = {
            "number": number,
            "price": round(chance.uniform(1, 500), 2),
            "quantity": chance.randrange(1, 10_000),
            "note": chance.choice(_NOTES),
        }
        yield Said(number, load.groups[group], more, load.receivers[group])


def expected(load: Load, count: int) -> list[list[int]]:
    """The oracle: the numbers of the events that each subscriber must get of the first so many, in their order."""
    due: list[list[int]] = [[] for _ in range(load.subscribers)]
    for said in events(load, count):
        for subscriber in said.receivers:
            due[subscriber].append(said.number)
    return due


def is_correct(load: Load, count: int, got: Sequence[Iterable[int]]) -> bool:
    """Whether every subscriber got exactly the events it must get, each once, in whatever order."""
    return [sorted(numbers) for numbers in got] == expected(load, count)


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How a contender did."""

    contender: str
    filters: int
    events: int
    """published at full speed"""
    deliveries: int
    seconds: float
    """from the first event published to the last one delivered"""
    cpu_seconds: float
    """of the server in that time"""
    client_cpu_seconds: float
    """of publishers and subscribers in that time"""
    other_cpu_seconds: float
    """of all else on the machine in that time: where it is much, the rate says less than `events_per_cpu_second`"""
    idle_mb: float
    """memory of the server before it had any filter"""
    busy_mb: float
    """and after the events"""
    paced: float | None = None
    """events a second when latency was measured"""
    p50_ms: float | None = None
    """from when an event was due to be published to each delivery of it"""
    p99_ms: float | None = None
    slow: float | None = None
    """the same at another pace, which all contenders can keep"""
    slow_p50_ms: float | None = None
    slow_p99_ms: float | None = None
    correct: bool
    """every subscriber got exactly what it should, at full speed and paced"""

    @property
    def events_per_second(self) -> float:
        """Events in."""
        return self.events / self.seconds

    @property
    def deliveries_per_second(self) -> float:
        """Events out: an event counts for each subscriber that gets it."""
        return self.deliveries / self.seconds

    @property
    def cores(self) -> float:
        """How many cores the server kept busy."""
        return self.cpu_seconds / self.seconds

    @property
    def events_per_cpu_second(self) -> float:
        """Events in for each second of the server's CPU; infinite if it used too little to be counted."""
        return self.events / self.cpu_seconds if self.cpu_seconds else math.inf


def percentiles(seconds: Sequence[float]) -> tuple[float, float] | None:
    """The 50th and the 99th percentile in milliseconds; of nothing there are none.

    >>> percentiles([0.001, 0.002, 0.003])
    (2.0, 2.98)
    """
    if not len(seconds):
        return None
    p50, p99 = np.percentile(np.asarray(seconds) * 1000, (50, 99)).tolist()
    return round(p50, 3), round(p99, 3)


def family(pid: int) -> list[int]:
    """A process and all its descendants that live."""
    children: dict[int, list[int]] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit() and (stat := _stat(int(directory.name))):
            children.setdefault(int(stat[1]), []).append(int(directory.name))
    found = [pid]
    for one in found:
        found += children.get(one, ())
    return found


def cpu_seconds(pids: Iterable[int]) -> float:
    """The CPU time that these processes have used, user and system; one that has ended counts for nothing."""
    ticks = sum(int(stat[11]) + int(stat[12]) for pid in pids if (stat := _stat(pid)))
    return ticks / os.sysconf("SC_CLK_TCK")


def machine_cpu_seconds() -> float:
    """The CPU time that all processes of the machine have used, and what its host took from it."""
    line = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0]
    user, nice, system, _idle, _waiting, *interrupts_and_stolen = map(int, line.split()[1:9])
    return (user + nice + system + sum(interrupts_and_stolen)) / os.sysconf("SC_CLK_TCK")


def memory_mb(pids: Iterable[int]) -> float:
    """The memory that these processes hold, in megabytes; what they share counts for each."""
    pages = sum(int(stat[21]) for pid in pids if (stat := _stat(pid)))
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def load_of(result: Result) -> str:
    """In a few words who kept the cores busy: whether the server was what limited the rate."""
    clients, others = (spent / result.seconds for spent in (result.client_cpu_seconds, result.other_cpu_seconds))
    return f"server {result.cores:.2f}, clients {clients:.2f}, others {others:.2f} of {os.cpu_count()} cores"


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name, which may hold spaces; nothing if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
