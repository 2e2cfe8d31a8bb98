"""X5: the order of attributes in the tree. The paper uses the alphabet and asks whether another order is better.

All orders get the same filters, dealt to the links of a broker, and the same events. Popularity and selectivity are
learned from filters and from other events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, Final, NamedTuple

from fieldfare.filters.branch import Branch
from fieldfare.routing.prefix.labels import ALPHABET, Order, by_popularity, by_selectivity
from fieldfare.routing.prefix.placements import Placements
from fieldfare.routing.prefix.selection import select, tag_of
from fieldfare.routing.prefix.tag import Tag, encode
from fieldfare.routing.prefix.tree import Tree
from fieldfare_lab.prefix.sizes import Size, grow, size_of
from fieldfare_lab.prefix.workload import DISTRIBUTIONS, Distribution, Workload
from fieldfare_lab.results import Claim, Curves, Result, Settings, curves_of, last

ORDERS: Final = ("alphabet", "popularity", "selectivity")
FILTERS: Final = (500, 1_500, 4_000)
EVENTS: Final = 500
SAMPLE: Final = 200
"""number of events from which selectivity is learned, with five times as many filters"""
LINKS: Final = 16
ALPHABETS: Final = 3
DEPTHS: Final = (1, 2, 3, 4, 6, 8, 10, 12, 16)


def orders(boxes: Sequence[Branch], sample: Sequence[Mapping[str, object]]) -> dict[str, Order]:
    """Return the orders to compare: alphabet, popularity and selectivity."""
    found = ALPHABET, by_popularity(boxes), by_selectivity(boxes[: 5 * SAMPLE], sample)
    return dict(zip(ORDERS, found, strict=True))


class Limited(NamedTuple):
    """The precision and size of tags with a limit of depth."""

    depth: int
    unwanted: float
    """percentage of forwarded events without a match"""
    bytes: float
    """mean size of a tag"""


class Laid(NamedTuple):
    """The trees and tags of an order of attributes."""

    distribution: Distribution
    order: str
    sizes: dict[int, Size]
    """sizes by the number of filters"""
    limited: tuple[Limited, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Return the sizes as rows for `curves_of`."""
        line = f"{self.distribution}, {self.order}"
        return [{"line": line, "filters": count, **size._asdict()} for count, size in self.sizes.items()]


def laid(settings: Settings, seed: int, distribution: Distribution) -> list[Laid]:
    """Build a tree for each order, with the same filters and events."""
    counts = list(dict.fromkeys(settings.size(count) for count in FILTERS))
    workload = Workload(seed, distribution)
    boxes, events = workload.boxes(counts[-1]), workload.events(settings.size(EVENTS))
    found = []
    for name, order in orders(boxes, workload.events(SAMPLE)).items():
        tree, sizes, before = Tree(order=order), dict[int, Size](), 0
        for count in counts:
            grow(tree, boxes[before:count])
            sizes[count], before = size_of(tree, events), count
        found.append(Laid(distribution, name, sizes, limited(placed(tree, boxes), events)))
    return found


def placed(tree: Tree, boxes: Sequence[Branch]) -> Placements:
    """Place boxes in a tree; the links of the broker get the boxes in turn."""
    places = Placements(tree)
    for number, box in enumerate(boxes):
        places.add(box, f"link {number % LINKS}")
    return places


def limited(places: Placements, events: Sequence[Mapping[str, object]]) -> tuple[Limited, ...]:
    """Compare tags of each depth with unlimited tags: surplus forwards, and bytes."""
    tree = places.tree
    selected = [select(tree, event) for event in events]
    wanted = [_read(places, tag_of(tree, nodes)) for nodes in selected]
    right, found = sum(map(len, wanted)), []
    for limit in DEPTHS:
        tags = [tag_of(tree, [one for one in nodes if one[1] <= limit], limit) for nodes in selected]
        wrong = sum(len(_read(places, tag) - links) for tag, links in zip(tags, wanted, strict=True))
        found.append(Limited(limit, 100 * wrong / max(1, wrong + right), mean(len(encode(tag)) for tag in tags)))
    return tuple(found)


def _read(places: Placements, tag: Tag) -> set[str]:
    links = places.read(tag)
    assert links is not None, "a tag of the same tree"
    return links


def layouts(settings: Settings) -> Result:
    """X5: sizes and false positives with three orders of attributes."""
    # the quality of an alphabet is chance: several seeds, except for a first impression
    seeds = range(settings.seed, settings.seed + settings.replications * (ALPHABETS if settings.scale >= 1 else 1))
    found = [one for distribution in DISTRIBUTIONS for seed in seeds for one in laid(settings, seed, distribution)]
    sizes = [row for one in found for row in one.rows()]
    nodes, average = (
        curves_of(sizes, title=title, x="filters", line="line", value=value)
        for title, value in (("nodes of the RT", "nodes"), ("nodes of an FPT, mean", "mean"))
    )
    unwanted, size = (
        {d: _by_depth(found, d, title, value) for d in DISTRIBUTIONS}
        for title, value in (("false positives, %", "unwanted"), ("bytes of an FPT", "bytes"))
    )
    return Result(
        "X5", "The order of attributes",
        f"{settings.size(FILTERS[-1]):,} filters as in X1, dealt to {LINKS} links of a broker; "
        f"{settings.size(EVENTS):,} events; false positives: forwarded by a tag with a limit of depth, not by an "
        "unlimited tag",
        (*unwanted.values(), *size.values(), nodes, average),
        tuple(
            claim
            for d in DISTRIBUTIONS
            for claim in (
                _better(f"{d}: popular attributes first make the RT smaller", _ends(nodes, d), "popularity"),
                _better(f"{d}: selective attributes first make FPTs smaller", _ends(average, d), "selectivity"),
                _better(
                    f"{d}: and give limited tags fewer false positives (mean of all depths, %)",
                    _means(unwanted[d]), "selectivity", _at(unwanted[d]),
                ),
            )
        ),
        _NOTES,
    )  # fmt: skip


_NOTES: Final = (
    "Filters come to links by chance, so near the root there are filters of all links below every node, whatever the "
    "order: a tag of a few levels says nothing. Orders differ from a depth of 8 on. Where names are uneven, selective "
    "attributes first give the smallest FPTs and on average the fewest false positives, though not by much; where "
    "names are even (uniform) there is little to learn. With popular attributes first, paths share more nodes, but are "
    "also split more often, because overlapping constraints meet near the root: for pareto the first effect prevails, "
    "for gaussian the second."
)


def _by_depth(found: Sequence[Laid], distribution: Distribution, title: str, value: str) -> Curves:
    rows = [
        {"order": one.order, **limit._asdict()}
        for one in found
        if one.distribution == distribution
        for limit in one.limited
    ]
    return curves_of(rows, title=f"{title}; {distribution}", x="depth", line="order", value=value)


def _better(text: str, ends: Mapping[str, float], order: str, more: str = "") -> Claim:
    """The claim that an order is better than the alphabet by 5 % or more."""
    first = ends["alphabet"] or 1.0
    measured = "; ".join(f"{name} {_short(end)} ({end / first - 1:+.0%})" for name, end in ends.items())
    return Claim(f"{text} by 5 % or more", ends[order] <= 0.95 * first, measured + more)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1_000 else f"{value:.1f}"


def _ends(curves: Curves, distribution: Distribution) -> dict[str, float]:
    """The value of each order with all filters."""
    return {name: last(curves, f"{distribution}, {name}") for name in ORDERS}


def _means(curves: Curves) -> dict[str, float]:
    """The mean of each order over all depths."""
    return {name: mean(value or 0.0 for value in line) for name, line in curves.lines.items()}


def _at(curves: Curves, depth: int = 12) -> str:
    place = curves.at.index(depth)
    return f"; at depth {depth} " + ", ".join(f"{line[place]:.1f}" for line in curves.lines.values())
