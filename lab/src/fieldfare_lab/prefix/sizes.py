"""X1: the sizes of Routing Trees (RTs) and of events' tags (FPTs), in nodes and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import mean
from typing import Any, Final, NamedTuple

from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.routing.prefix.insertion import plan
from fieldfare.routing.prefix.selection import match
from fieldfare.routing.prefix.tag import Tag, encode
from fieldfare.routing.prefix.tree import ROOT, START, Tree
from fieldfare_lab.prefix.workload import DISTRIBUTIONS, Distribution, Mix, Workload
from fieldfare_lab.results import Claim, Curves, Result, Settings, curves_of, last

FILTERS: Final = (1_000, 3_000, 10_000, 30_000, 90_000)
"""numbers of filters; the last makes a tree of about a million nodes"""
EVENTS: Final = 1_000
FEW, MANY = Mix(), Mix(names=1_000)
NAMES: Final = (20, 100, 1_000, 10_000)
EQUAL: Final = (0.0, 0.4, 0.8)


def grow(tree: Tree, boxes: Iterable[Branch]) -> None:
    """Insert boxes as an optimizer does, but without the optimizer's log of updates."""
    for box in boxes:
        for graft in plan(tree, tree.order.path(box)).grafts:
            at, over = graft.at, graft.over
            for label in graft.chain:
                id = tree.size + 1
                tree.add(id, at, label, over, START)
                at, over = id, ()


def levels(tree: Tree) -> Iterator[int]:
    """Return the number of nodes on each level, beginning below the root."""
    level = [ROOT]
    while level := [child for id in level for child in tree[id].children]:
        yield len(level)


class Size(NamedTuple):
    """The size of a tree and of its tags."""

    nodes: int
    """nodes of the Routing Tree"""
    mean: float
    """mean number of nodes in an event's FPT"""
    largest: int
    """nodes of the largest FPT"""
    bytes: float
    """mean size of an FPT"""


def matching(boxes: Iterable[Branch], events: Sequence[Mapping[str, object]]) -> float:
    """Return the mean number of boxes that an event satisfies."""
    index: Index[int] = Index()
    index.add_many((number, Filter([box])) for number, box in enumerate(boxes))
    return mean(len(index.match(event)) for event in events)


def size_of(tree: Tree, events: Sequence[Mapping[str, object]]) -> Size:
    """Measure a tree and the tags of some events."""
    tags = [match(tree, event) for event in events]
    nodes = [len(tag.steps) for tag in tags]
    return Size(tree.size, mean(nodes), max(nodes), mean(len(encode(tag)) for tag in tags))


class Grown(NamedTuple):
    """The growth of a tree: its sizes at some numbers of filters, and its levels at the end."""

    distribution: Distribution
    mix: Mix
    sizes: dict[int, Size]
    """sizes by the number of filters"""
    levels: tuple[int, ...]

    @property
    def line(self) -> str:
        """Return the name of the tree's line in curves."""
        return f"{self.distribution}, {self.mix.names:,} names"

    def rows(self) -> list[dict[str, Any]]:
        """Return the sizes as rows for `curves_of`."""
        return [
            {"line": self.line, "distribution": self.distribution, "filters": count, **self.mix._asdict(),
             **size._asdict()}
            for count, size in self.sizes.items()
        ]  # fmt: skip


def grown(seed: int, distribution: Distribution, mix: Mix, counts: Iterable[int], events: int) -> Grown:
    """Grow a tree, and measure its size at each of the given numbers of filters."""
    workload, tree, sizes, before = Workload(seed, distribution, mix), Tree(), dict[int, Size](), 0
    seen = workload.events(events)
    for count in counts:
        grow(tree, workload.boxes(count - before))
        sizes[count], before = size_of(tree, seen), count
    return Grown(distribution, mix, sizes, tuple(levels(tree)))


def _all(settings: Settings, mixes: Iterable[Mix], counts: Sequence[int]) -> list[Grown]:
    seeds = range(settings.seed, settings.seed + settings.replications)
    events = settings.size(EVENTS)
    return [grown(seed, d, mix, counts, events) for mix in mixes for d in DISTRIBUTIONS for seed in seeds]


def _matched(settings: Settings, count: int) -> list[dict[str, Any]]:
    rows = []
    for names in NAMES:
        for distribution in DISTRIBUTIONS:
            workload = Workload(settings.seed, distribution, FEW._replace(names=names))
            found = matching(workload.boxes(count), workload.events(settings.size(EVENTS)))
            rows.append({"names": names, "distribution": distribution, "matched": found})
    return rows


def trees(settings: Settings) -> Result:
    """X1: Routing Trees up to a million nodes, with their tags, by distribution and number of names."""
    # the large trees take longer than all others together: too long for a first impression
    counts = [settings.size(count) for count in (FILTERS if settings.scale >= 1 else FILTERS[:3])]
    middle = settings.size(3_000)
    main = _all(settings, (FEW, MANY), counts)
    sizes = [row for one in main for row in one.rows()]
    named = _all(settings, [FEW._replace(names=count) for count in NAMES], [middle])
    equal = _all(settings, [FEW._replace(equal=share) for share in EQUAL], [middle])
    nodes, average, largest, size = (
        curves_of(sizes, title=title, x="filters", line="line", value=value)
        for title, value in (
            ("nodes of the RT", "nodes"), ("nodes of an FPT, mean", "mean"), ("nodes of the largest FPT", "largest"),
            ("bytes of an FPT, mean", "bytes"),
        )
    )  # fmt: skip
    matched = curves_of(
        _matched(settings, middle), title=f"filters that an event satisfies, of {middle:,}", x="names",
        line="distribution", value="matched",
    )  # fmt: skip
    by_names, by_equal = (
        tuple(
            curves_of(
                [row for one in found for row in one.rows()], title=f"{title}, {middle:,} filters", x=what,
                line="distribution", value=value,
            )
            for title, value in (("nodes of the RT", "nodes"), ("largest FPT", "largest"))
        )
        for what, found in (("names", named), ("equal", equal))
    )  # fmt: skip
    return Result(
        "X1", "Trees and tags against filters",
        f"2 to 8 constraints a filter, 2 to 12 attributes an event, values from -50 to 50; {FEW.names:,} names and "
        f"{FEW.equal:.0%} equalities, unless stated otherwise; {settings.size(EVENTS):,} events",
        (nodes, average, largest, size, _levels(main), *by_names, matched, *by_equal),
        (
            *(_largest(main, mix, counts[-1]) for mix in (FEW, MANY)),
            *(_larger(nodes, distribution, mix) for mix in (FEW, MANY) for distribution in DISTRIBUTIONS[1:]),
            Claim(
                "a node of an FPT takes one byte or two, beside 5 for the version",
                all(_slope(average, size, one.line) <= 2 for one in main),
                "; ".join(f"{line} {_slope(average, size, line):.2f}" for line in nodes.lines),
            ),
        ),
        _NOTES,
    )  # fmt: skip


_NOTES: Final = (
    "The paper names neither the number of names nor the frequency of operators, and its claims depend on both. With "
    "more names FPTs are smaller, since fewer constraints are about attributes of an event; but hardly any event "
    "satisfies a filter at all. Filters with uneven names meet on frequent names, overlap and are split more often, as "
    "the paper says, but also share more of their paths; and with many filters for their names, filters with even "
    "names meet as often. So uniform has the larger tree from some number of filters on, and the number is higher with "
    "more names. With 20 names, filters with uneven names also constrain the same attribute twice, and have fewer "
    "constraints in normal form. More equalities make trees and FPTs smaller."
)


def _largest(main: Iterable[Grown], mix: Mix, count: int) -> Claim:
    """The claim about the largest FPT, over all replications."""
    found = {d: [one.sizes[count] for one in main if one.mix == mix and one.distribution == d] for d in DISTRIBUTIONS}
    most = {d: max(size.largest for size in sizes) for d, sizes in found.items()}
    return Claim(
        f"the largest FPT barely exceeds 150 nodes (at most 200) at about a million RT nodes; {mix.names:,} names",
        max(most.values()) <= 200 and min(size.nodes for sizes in found.values() for size in sizes) > 300_000,
        "; ".join(f"{d} {most[d]} at {mean(size.nodes for size in found[d]):,.0f}" for d in DISTRIBUTIONS),
    )


def _larger(nodes: Curves, distribution: Distribution, mix: Mix) -> Claim:
    one, other = (nodes.lines[f"{d}, {mix.names:,} names"] for d in (distribution, "uniform"))
    ratios = [(a or 0) / (b or 1) for a, b in zip(one, other, strict=True)]
    return Claim(
        f"the RT is larger for {distribution} than for uniform; {mix.names:,} names", ratios[-1] > 1,
        ", ".join(f"× {ratio:.2f} ({at:,.0f} filters)" for at, ratio in zip(nodes.at, ratios, strict=True)),
    )  # fmt: skip


def _levels(main: Sequence[Grown]) -> Curves:
    """About a dozen levels of a single run for each line: a mean over trees of different heights says little."""
    height = max(len(one.levels) for one in main)
    shown = range(1, height + 1, -(-height // 12))
    lines: dict[str, tuple[float | None, ...]] = {
        one.line: tuple(dict(enumerate(one.levels, 1)).get(level) for level in shown) for one in main
    }
    return Curves("nodes of the largest RT, by level", "level", tuple(shown), lines)


def _slope(nodes: Curves, size: Curves, line: str) -> float:
    return (last(size, line) - _HEADER) / last(nodes, line)


_HEADER: Final = len(encode(Tag(START, 0, None, ())))
