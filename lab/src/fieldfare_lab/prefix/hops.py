"""X7: what a broker on the way does with an event: read its tag, ask the engine, or try one filter after another.

A broker that forwards by tags matches an event where it enters and reads a tag everywhere; with covering every broker
asks its table, with our engine behind it; the naive way is to evaluate every filter. What is the same for all (links,
duplicates, delivery to clients) is left out. CPU time; the answers are compared first.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.routing.prefix.optimizer import Optimizer
from fieldfare.routing.prefix.placements import Placements
from fieldfare.tables.indexed import IndexedTable
from fieldfare_lab.prefix.workload import Mix, Workload
from fieldfare_lab.results import Claim, Curves, Result, Settings

HOPS: Final = (2, 4, 8, 16)
SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
COVERED: Final = 20_000
"""with more filters the table is not filled one by one: all are kept, which makes the engine a little slower"""
GROWN: Final = 100_000
"""with more filters no tree is made: it would take more than ten minutes"""
ROUNDS: Final = 5
EVENTS: Final = 200
_TRIED: Final = 50_000
"""filters that the naive way evaluates in a round"""
_PAYLOAD: Final = 100


class Case(NamedTuple):
    """A broker."""

    name: str
    filters: int
    links: int = 4
    names: int = 100
    payload: int = 0
    """attributes of an event that nobody asks about"""
    depth: int | None = None
    """of tags"""


class Cost(NamedTuple):
    """CPU µs an event."""

    entry: float
    inner: float
    exit: float
    """with what clients there want"""

    def path(self, hops: int) -> float:
        """From one broker to another: so many brokers have it."""
        return self.entry + (hops - 1) * self.inner


class Costs(NamedTuple):
    """Of a case."""

    ways: dict[str, Cost]
    """tags, if there is a tree; covering; naive"""
    decode: float
    """to read an event from a wire"""
    build: float
    """CPU s to make the tree"""
    nodes: int
    bytes: float
    """of a tag"""

    def ratio(self, hops: int, *, lazy: bool = False) -> float | None:
        """Tags by covering; lazy: an event is read from the wire only where its content is looked at."""
        if "tags" not in self.ways:
            return None
        tags, covering = (self.ways[way].path(hops) for way in ("tags", "covering"))
        return (tags + lazy * self.decode) / max(1e-9, covering + lazy * hops * self.decode)


def measure(case: Case, seed: int, clock: Callable[[], float]) -> Costs:
    """All that a broker does with events, in rounds that take turns; the best counts."""
    workload = Workload(seed, "gaussian", Mix(names=case.names))
    links = [f"link {number}" for number in range(case.links)]
    payload = {f"payload {number:03}": number for number in range(case.payload)}
    events = [Event({**workload.event(), **payload}) for _ in range(EVENTS)]
    boxes = workload.boxes(case.filters)
    table = _Covering([(Filter([box]), links[number % len(links)]) for number, box in enumerate(boxes)], links)
    few = events[: max(2, min(EVENTS, _TRIED // case.filters))]
    local = Index((number, filter) for number, (filter, link) in enumerate(table.pairs) if link == links[0])
    ours = [filter for filter, link in table.pairs if link == links[0]]
    wire = [msgpack.encode(event) for event in events]
    steps: dict[str, tuple[Callable[[Any], object], Sequence[Any]]] = {
        "decode": (msgpack.decode, wire),
        "covering": (table.match, events),
        "local": (local.match, events),
        "naive": (table.try_all, few),
        "naive local": (lambda event: [filter for filter in ours if filter.matches_fields(event.fields)], few),
    }
    for event in few:
        _same(table.try_all(event), table.match(event))
    build, nodes, size = 0.0, 0, 0.0
    if case.filters <= GROWN:
        start = clock()
        optimizer = Optimizer(boxes=boxes)
        build = clock() - start
        optimizer.publish(0.0)
        places = Placements(optimizer.tree)
        for filter, link in table.pairs:
            places.add(filter.boxes[0], link)
        tags = [places.write(event, case.depth) for event in events]
        for event, tag in zip(events, tags, strict=True):
            found = places.read_bytes(tag)
            _same(found if case.depth is None else (found or set()) & table.match(event), table.match(event))
        steps["enter"] = (lambda event: places.read_bytes(places.write(event, case.depth)), events)
        steps["tag"] = (places.read_bytes, tags)
        nodes, size = optimizer.tree.size, sum(map(len, tags)) / len(tags)
    best = _timed(steps, clock)
    ways = {
        "covering": Cost(best["covering"], best["covering"], best["covering"] + best["local"]),
        "naive": Cost(best["naive"], best["naive"], best["naive"] + best["naive local"]),
    }
    if "tag" in best:
        ways = {"tags": Cost(best["enter"], best["tag"], best["tag"] + best["local"]), **ways}
    return Costs(ways, best["decode"], build, nodes, size)


class _Covering:
    """What neighbours told a broker."""

    def __init__(self, pairs: Sequence[tuple[Filter, str]], links: Sequence[str]) -> None:
        self.match: Callable[[Mapping[str, object]], set[str]]
        if len(pairs) <= COVERED:
            table = IndexedTable[str](links)
            table.add_many(pairs)
            self.pairs = [(filter, link) for filter in table.filters() for link in table.interfaces(filter)]
            self.match = table.match
            return
        self.pairs = list(pairs)
        index: Index[int] = Index(enumerate(filter for filter, _ in pairs))
        self.match = lambda event: {pairs[number][1] for number in index.match(event)}

    def try_all(self, event: Event) -> set[str]:
        """The naive way."""
        fields = event.fields
        return {link for filter, link in self.pairs if filter.matches_fields(fields)}


def _same(found: set[str] | None, expected: set[str]) -> None:
    if found != expected:
        raise RuntimeError(f"an event would go to {found}, and is wanted by {expected}")


def _timed(
    steps: Mapping[str, tuple[Callable[[Any], object], Sequence[Any]]], clock: Callable[[], float]
) -> dict[str, float]:
    """The best µs of each."""
    best = dict.fromkeys(steps, float("inf"))
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for name, (step, given) in steps.items():
                start = clock()
                for one in given:
                    step(one)
                best[name] = min(best[name], 1e6 * (clock() - start) / len(given))
    finally:
        gc.enable()
    return best


def hops(settings: Settings) -> Result:
    """X7: where does it pay to match once?"""
    sizes = tuple(dict.fromkeys(settings.size(size) for size in (SIZES if settings.scale >= 1 else SIZES[:2])))
    usual = sizes[1]
    cases = [Case(f"{size:,} filters", size) for size in sizes]
    variants = [
        Case("16 links", usual, links=16),
        Case("20 names", usual, names=20),
        Case("tags of depth 4", usual, depth=4),
        Case(f"{_PAYLOAD} attributes more", usual, payload=_PAYLOAD),
    ]
    found = {case: measure(case, settings.seed, settings.clock) for case in (*cases, *variants)}
    grown = [case for case in cases if "tags" in found[case].ways]
    middle, large = found[cases[1]], found[variants[-1]]
    lines = {case.name: [found[case].ratio(count) for count in HOPS] for case in (*grown, *variants)}
    lazy = {case.name: [found[case].ratio(count, lazy=True) for count in HOPS] for case in (*grown, *variants)}
    return Result(
        "X7", "CPU time a hop",
        "a broker with 4 links, gaussian filters with 100 names; tags without a limit, all filters have their nodes; "
        f"best of {ROUNDS} rounds that take turns, {EVENTS} events",
        (
            _by_size("CPU µs where an event enters", "entry", cases, found),
            _by_size("CPU µs at a broker on the way", "inner", cases, found),
            _by_size("CPU µs where it leaves, with its clients", "exit", cases, found),
            Curves(
                f"CPU µs for a path, {usual:,} filters", "brokers", HOPS,
                {way: tuple(cost.path(count) for count in HOPS) for way, cost in middle.ways.items()},
            ),
            Curves("tags / covering", "brokers", HOPS, {name: tuple(line) for name, line in lines.items()}),
            Curves(
                "the same, if events are read from the wire only where they are matched", "brokers", HOPS,
                {name: tuple(line) for name, line in lazy.items()},
            ),
            Curves(
                "the tree", "filters", tuple(float(case.filters) for case in grown),
                {
                    "CPU s to make it": tuple(found[case].build for case in grown),
                    "nodes": tuple(float(found[case].nodes) for case in grown),
                    "bytes of a tag": tuple(found[case].bytes for case in grown),
                },
            ),
        ),
        (
            Claim(
                "tags take less than evaluating every filter, on every path",
                all(
                    found[case].ways["tags"].path(count) < found[case].ways["naive"].path(count)
                    for case in grown
                    for count in HOPS
                ),
                "; ".join(
                    f"{case.name}: {found[case].ways['tags'].path(8):,.0f} and "
                    f"{found[case].ways['naive'].path(8):,.0f} µs for 8 brokers"
                    for case in grown
                ),
            ),
            Claim(
                "tags take less than covering with our engine on long paths (16 brokers)",
                all((line[-1] or 0) < 1 for line in lines.values()),
                "; ".join(f"{name} {line[-1]:.1f} times" for name, line in lines.items()),
            ),
            Claim(
                f"with large events ({_PAYLOAD} attributes that nobody asks about) they do, if a broker that reads "
                "the tag need not read the event",
                (large.ratio(HOPS[-1], lazy=True) or 0) < 1,
                f"{large.ratio(HOPS[-1], lazy=True) or 0:.2f} times; to read such an event takes {large.decode:.0f} µs",
            ),
        ),
        "To read a tag takes a step for every node that the event selects, and there are more of them than filters "
        "that match: most paths are selected in part. Where an event enters, the engine has to find all these nodes "
        "among ten times as many as there are filters. That has to be earned back on the way, by brokers that read a "
        "tag instead of asking the engine; tags with a limit are read without compiled code. Our nodes read every "
        "event from the wire, so what not to read it would save is only computed, from the times of its parts. With "
        f"more than {COVERED:,} filters nothing is left out that others cover, for tags and engine alike. With more "
        f"than {GROWN:,} no tree was tried: by what {grown[-1].filters:,} take, a million would take more than ten "
        "minutes, and more memory than such machines have.",
    )  # fmt: skip


def _by_size(title: str, what: str, cases: Sequence[Case], found: Mapping[Case, Costs]) -> Curves:
    lines = {
        way: tuple(
            getattr(found[case].ways[way], what) if way in found[case].ways else None for case in cases
        )
        for way in ("tags", "covering", "naive")
    }  # fmt: skip
    return Curves(title, "filters", tuple(float(case.filters) for case in cases), lines)
