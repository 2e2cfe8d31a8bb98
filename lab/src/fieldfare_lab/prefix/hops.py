"""X7: CPU time of a broker on the way of an event: reading a tag, asking the engine, or trying filter after filter.

With tags, the first broker matches an event and every broker reads the tag; with covering, every broker asks its
table, which uses Fieldfare's engine; the naive way evaluates every filter. Costs that all ways share (links,
duplicates, delivery to clients) are left out. The answers are compared before the times are taken.
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
"""largest table that is filled filter by filter; larger tables keep covered filters, which slows the engine a little"""
GROWN: Final = 100_000
"""largest number of filters with a tree; more would take more than ten minutes"""
ROUNDS: Final = 5
EVENTS: Final = 200
_TRIED: Final = 50_000
"""number of filters that the naive way evaluates in a round"""
_PAYLOAD: Final = 100


class Case(NamedTuple):
    """The parameters of a measured broker."""

    name: str
    filters: int
    links: int = 4
    names: int = 100
    payload: int = 0
    """number of attributes of an event that no filter names"""
    depth: int | None = None
    """limit of the depth of tags; None: no limit"""


class Cost(NamedTuple):
    """CPU microseconds for an event, at a broker where the event enters, passes or leaves."""

    entry: float
    inner: float
    exit: float
    """including the match of local clients' filters"""

    def path(self, hops: int) -> float:
        """Return the cost of a path over so many brokers."""
        return self.entry + (hops - 1) * self.inner


class Costs(NamedTuple):
    """All measured costs of a case."""

    ways: dict[str, Cost]
    """costs of `covering`, `naive` and, if there is a tree, `tags`"""
    decode: float
    """CPU microseconds to decode an event"""
    build: float
    """CPU seconds to make the tree"""
    nodes: int
    """nodes of the tree"""
    bytes: float
    """mean size of a tag"""

    def ratio(self, hops: int, *, lazy: bool = False) -> float | None:
        """Return the cost of tags divided by the cost of covering, or None without a tree.

        With `lazy`, an event is decoded only where its content is needed: with tags, only at the first broker.
        """
        if "tags" not in self.ways:
            return None
        tags, covering = (self.ways[way].path(hops) for way in ("tags", "covering"))
        return (tags + lazy * self.decode) / max(1e-9, covering + lazy * hops * self.decode)


def measure(case: Case, seed: int, clock: Callable[[], float]) -> Costs:
    """Measure all steps of a broker, in rounds that the steps take in turns; the best round counts."""
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
    """The table of a broker with the filters of its neighbours."""

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
        """Return the links of an event by evaluating every filter, the naive way."""
        fields = event.fields
        return {link for filter, link in self.pairs if filter.matches_fields(fields)}


def _same(found: set[str] | None, expected: set[str]) -> None:
    if found != expected:
        raise RuntimeError(f"an event would go to {found} instead of {expected}")


def _timed(
    steps: Mapping[str, tuple[Callable[[Any], object], Sequence[Any]]], clock: Callable[[], float]
) -> dict[str, float]:
    """The best CPU microseconds of each step."""
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
    """X7: CPU time for paths of 2 to 16 brokers, with tags, with covering and naively."""
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
        "a broker with 4 links, gaussian filters with 100 names; tags without a limit, all filters have nodes; "
        f"best of {ROUNDS} rounds that take turns, {EVENTS} events",
        (
            _by_size("CPU µs where an event enters", "entry", cases, found),
            _by_size("CPU µs at a broker on the way", "inner", cases, found),
            _by_size("CPU µs where an event leaves, with local clients", "exit", cases, found),
            Curves(
                f"CPU µs for a path, {usual:,} filters", "brokers", HOPS,
                {way: tuple(cost.path(count) for count in HOPS) for way, cost in middle.ways.items()},
            ),
            Curves("tags / covering", "brokers", HOPS, {name: tuple(line) for name, line in lines.items()}),
            Curves(
                "tags / covering, if events are decoded only where they are matched", "brokers", HOPS,
                {name: tuple(line) for name, line in lazy.items()},
            ),
            Curves(
                "the tree", "filters", tuple(float(case.filters) for case in grown),
                {
                    "CPU s to make the tree": tuple(found[case].build for case in grown),
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
                f"with large events ({_PAYLOAD} attributes that no filter names) tags do, if a broker that reads "
                "the tag need not decode the event",
                (large.ratio(HOPS[-1], lazy=True) or 0) < 1,
                f"{large.ratio(HOPS[-1], lazy=True) or 0:.2f} times; decoding such an event takes "
                f"{large.decode:.0f} µs",
            ),
        ),
        "Reading a tag takes a step for every node that the event selects, and an event selects more nodes than "
        "filters match: most paths are selected in part. Where an event enters, the engine must find all selected "
        "nodes, among ten times as many nodes as filters. Brokers on the way, which read a tag instead of asking the "
        "engine, must earn the cost back; tags with a limit are read without compiled code. Fieldfare's nodes decode "
        "every event, so the savings of not decoding are only computed, from measured times of the parts. With more "
        f"than {COVERED:,} filters covered filters are kept, for tags and engine alike. With more than {GROWN:,} no "
        f"tree was made: judging by {grown[-1].filters:,} filters, a million would take more than ten minutes, and "
        "more memory than such machines have.",
    )  # fmt: skip


def _by_size(title: str, what: str, cases: Sequence[Case], found: Mapping[Case, Costs]) -> Curves:
    lines = {
        way: tuple(
            getattr(found[case].ways[way], what) if way in found[case].ways else None for case in cases
        )
        for way in ("tags", "covering", "naive")
    }  # fmt: skip
    return Curves(title, "filters", tuple(float(case.filters) for case in cases), lines)
