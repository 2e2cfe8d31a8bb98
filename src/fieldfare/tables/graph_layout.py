"""The drawing of a graph whose edges lead downwards: positions of boxes, and the lines between them.

Boxes stand in layers, each below all its predecessors. An edge across several layers gets a bend in each layer, with a
position of its own. Then the boxes of a layer are ordered to avoid crossings (each box moves to the mean of its
neighbours in the adjacent layer, downwards and upwards in turn), and within the order all boxes move as close to their
neighbours as the others allow. Connected parts are drawn separately and set in lines, like words of a text.

The layout is arithmetic on sizes; the content of the boxes does not matter. The same graph gives the same drawing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

Edge: TypeAlias = tuple[int, int]


class Point(NamedTuple):
    """A position in a drawing: x to the right, y downwards."""

    x: float
    y: float


class Size(NamedTuple):
    """The width and height of a box or a drawing."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Gaps:
    """The distances between boxes, layers, bends and parts."""

    beside: float = 24
    below: float = 44
    bend: float = 10
    parts: float = 40


@dataclass(frozen=True, slots=True)
class Drawing:
    """The upper left corner of each box, the points of each edge, and the size of the whole."""

    corners: tuple[Point, ...]
    routes: tuple[tuple[Point, ...], ...]
    size: Size


GAPS: Final = Gaps()
_SWEEPS: Final = 12
_ASPECT: Final = 1.6
"""ratio of width to height at which a drawing of many parts aims"""


def draw(sizes: Sequence[Size], edges: Sequence[Edge], *, links: Iterable[Edge] = (), gaps: Gaps = GAPS) -> Drawing:
    """Draw boxes of given sizes. An edge leads from an upper box to a lower box; cycles raise a ValueError.

    Parts with `links` between their boxes are drawn beside each other where possible.

    >>> drawing = draw([Size(40, 20), Size(40, 20)], [(0, 1)])
    >>> drawing.corners, drawing.routes
    ((Point(x=0.0, y=0.0), Point(x=0.0, y=64.0)), ((Point(x=20.0, y=20.0), Point(x=20.0, y=64.0)),))
    """
    ordered = _beside_each_other(_parts(len(sizes), edges), links)
    parts = [_drawn(places, sizes, edges, gaps) for places in ordered]
    corners: dict[int, Point] = {}
    routes: dict[Edge, tuple[Point, ...]] = {}
    width = height = 0.0
    for part, (left, top) in zip(parts, _set([part.size for part in parts], gaps.parts), strict=True):
        corners |= {place: Point(left + x, top + y) for place, (x, y) in part.corners.items()}
        routes |= {edge: tuple(Point(left + x, top + y) for x, y in route) for edge, route in part.routes.items()}
        width, height = max(width, left + part.size.width), max(height, top + part.size.height)
    return Drawing(
        tuple(corners[place] for place in range(len(sizes))),
        tuple(routes[edge] for edge in edges),
        Size(width, height),
    )


# Parts


def _parts(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    """Return the connected parts: large parts first, otherwise in the order of their first boxes."""
    beside: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in edges:
        beside[upper].append(lower)
        beside[lower].append(upper)
    seen: set[int] = set()
    parts = []
    for first in range(count):
        if first not in seen:
            seen.add(first)
            part = [first]
            for place in part:
                fresh = [other for other in dict.fromkeys(beside[place]) if other not in seen]
                seen.update(fresh)
                part += fresh
            parts.append(sorted(part))
    return sorted(parts, key=len, reverse=True)


def _beside_each_other(parts: list[list[int]], links: Iterable[Edge]) -> list[list[int]]:
    """Return the parts in their order, but each followed by the parts with a link to it."""
    part_of = {place: number for number, part in enumerate(parts) for place in part}
    linked: dict[int, list[int]] = {}
    for one, other in links:
        linked.setdefault(part_of[one], []).append(part_of[other])
        linked.setdefault(part_of[other], []).append(part_of[one])
    order: dict[int, None] = {}
    for first in range(len(parts)):
        todo = [first]
        while todo:
            number = todo.pop()
            if number not in order:
                order[number] = None
                todo += sorted(linked.get(number, ()), reverse=True)
    return [parts[number] for number in order]


def _set(sizes: Sequence[Size], gap: float) -> Iterator[tuple[float, float]]:
    """Yield the corners of parts, set in lines whose width suits the whole."""
    area = sum((width + gap) * (height + gap) for width, height in sizes)
    line = max([(area * _ASPECT) ** 0.5, *(width for width, _ in sizes)])
    left = top = tallest = 0.0
    for width, height in sizes:
        if left and left + width > line:
            left, top, tallest = 0.0, top + tallest + gap, 0.0
        yield left, top
        left, tallest = left + width + gap, max(tallest, height)


# One part


@dataclass(frozen=True, slots=True)
class _Part:
    corners: dict[int, Point]
    routes: dict[Edge, tuple[Point, ...]]
    size: Size


@dataclass(slots=True)
class _Net:
    """Boxes and bends in layers. Both are called knots here; knots from `boxes` on are bends."""

    layers: list[list[int]]
    up: dict[int, list[int]]
    down: dict[int, list[int]]
    width: dict[int, float]
    bends: dict[Edge, list[int]]


def _drawn(places: Sequence[int], sizes: Sequence[Size], edges: Iterable[Edge], gaps: Gaps) -> _Part:
    mine = set(places)
    net = _net(places, sizes, [edge for edge in edges if edge[0] in mine])
    _order(net)
    centres = _centres(net, gaps)
    left = min(centres[knot] - net.width[knot] / 2 for knot in centres)
    right = max(centres[knot] + net.width[knot] / 2 for knot in centres)
    heights = [max((sizes[knot].height for knot in layer if knot in mine), default=0.0) for layer in net.layers]
    tops = [0.0]
    for height in heights:
        tops.append(tops[-1] + height + gaps.below)
    layer_of = {knot: number for number, layer in enumerate(net.layers) for knot in layer}

    def point(knot: int, down: float) -> Point:
        return Point(round(centres[knot] - left, 2), round(tops[layer_of[knot]] + down, 2))

    corners = {p: Point(round(centres[p] - left - sizes[p].width / 2, 2), tops[layer_of[p]]) for p in places}
    routes = {
        (upper, lower): (
            point(upper, sizes[upper].height),
            *(end for bend in bends for end in (point(bend, 0), point(bend, heights[layer_of[bend]]))),
            point(lower, 0),
        )
        for (upper, lower), bends in net.bends.items()
    }
    return _Part(corners, routes, Size(round(right - left, 2), tops[-1] - gaps.below))


def _net(places: Sequence[int], sizes: Sequence[Size], edges: Sequence[Edge]) -> _Net:
    layer_of = _layers(places, edges)
    layers: list[list[int]] = [[] for _ in range(max(layer_of.values()) + 1)]
    net = _Net(layers, {}, {}, {place: sizes[place].width for place in places}, {})
    for place in _first_order(places, edges):
        layers[layer_of[place]].append(place)
    knot = len(sizes)
    for upper, lower in edges:
        bends = list(range(knot, knot + layer_of[lower] - layer_of[upper] - 1))
        knot += len(bends)
        net.bends[upper, lower] = bends
        for number, bend in enumerate(bends, layer_of[upper] + 1):
            layers[number].append(bend)
            net.width[bend] = 0.0
        for above, below in zip([upper, *bends], [*bends, lower], strict=True):
            net.down.setdefault(above, []).append(below)
            net.up.setdefault(below, []).append(above)
    return net


def _layers(places: Sequence[int], edges: Iterable[Edge]) -> dict[int, int]:
    """Return the layer of each box: the length of the longest path from the top."""
    below: dict[int, list[int]] = {place: [] for place in places}
    waiting = dict.fromkeys(places, 0)
    for upper, lower in edges:
        below[upper].append(lower)
        waiting[lower] += 1
    layer_of = dict.fromkeys(places, 0)
    ready = [place for place in places if not waiting[place]]
    done = 0
    for upper in ready:
        done += 1
        for lower in below[upper]:
            layer_of[lower] = max(layer_of[lower], layer_of[upper] + 1)
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)
    if done < len(places):
        raise ValueError("the edges form a cycle: no box can be above itself")
    return layer_of


def _first_order(places: Sequence[int], edges: Iterable[Edge]) -> list[int]:
    """Return the boxes depth first from the top: a forest drawn in this order has no crossings."""
    below: dict[int, list[int]] = {place: [] for place in places}
    for upper, lower in edges:
        below[upper].append(lower)
    lower_ones = {lower for lowers in below.values() for lower in lowers}
    seen: dict[int, None] = {}
    stack = [place for place in reversed(places) if place not in lower_ones]
    while stack:
        place = stack.pop()
        if place not in seen:
            seen[place] = None
            stack.extend(reversed(below[place]))
    return list(seen)


# Order within layers


def _order(net: _Net) -> None:
    """Sort each layer by its knots' neighbours, downwards and upwards in turn, and keep the best order."""
    best, fewest = [list(layer) for layer in net.layers], _crossings(net)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        downwards = sweep % 2 == 0
        numbers = range(1, len(net.layers)) if downwards else range(len(net.layers) - 2, -1, -1)
        for number in numbers:
            beside = net.layers[number - 1 if downwards else number + 1]
            _sort(net.layers[number], beside, net.up if downwards else net.down)
        count = _crossings(net)
        if count < fewest:
            best, fewest = [list(layer) for layer in net.layers], count
    net.layers[:] = best


def _sort(layer: list[int], beside: Sequence[int], neighbours: dict[int, list[int]]) -> None:
    place = {knot: number for number, knot in enumerate(beside)}
    scale = len(beside) / max(1, len(layer))

    def mean(item: tuple[int, int]) -> float:
        number, knot = item
        near = neighbours.get(knot)
        return sum(place[other] for other in near) / len(near) if near else number * scale

    layer[:] = [knot for _, knot in sorted(enumerate(layer), key=mean)]


def _crossings(net: _Net) -> int:
    """Count the crossings of lines in all layers."""
    return sum(
        _inversions([place for knot in layer for place in sorted(places_below[k] for k in net.down.get(knot, ()))])
        for layer, following in zip(net.layers, net.layers[1:], strict=False)
        for places_below in [{knot: place for place, knot in enumerate(following)}]
    )


def _inversions(numbers: Sequence[int]) -> int:
    """Count the pairs in which the larger number comes first, by merge sort."""
    if len(numbers) < 2:
        return 0
    half = len(numbers) // 2
    left, right = sorted(numbers[:half]), sorted(numbers[half:])
    count, i = _inversions(numbers[:half]) + _inversions(numbers[half:]), 0
    for number in right:
        while i < len(left) and left[i] <= number:
            i += 1
        count += len(left) - i
    return count


# Places within layers


def _centres(net: _Net, gaps: Gaps) -> dict[int, float]:
    """Return the x of every knot.

    First side by side, then layer by layer as close to the neighbours as the order allows.
    """
    offsets = [_offsets(layer, net, gaps) for layer in net.layers]
    x = {
        knot: offset
        for layer, some in zip(net.layers, offsets, strict=True)
        for knot, offset in zip(layer, some, strict=True)
    }
    for sweep in range(
        _SWEEPS + 1
    ):  # the last sweep goes downwards, so that a single child hangs straight below its parent
        downwards = sweep % 2 == 0
        order = range(len(net.layers)) if downwards else range(len(net.layers) - 1, -1, -1)
        first, second = (net.up, net.down) if downwards else (net.down, net.up)
        for number in order:
            layer = net.layers[number]
            wanted = []
            for knot in layer:
                near = first.get(knot) or second.get(knot) or [knot]
                wanted.append(sum(x[other] for other in near) / len(near))
            x.update(zip(layer, _spread(wanted, offsets[number]), strict=True))
    return x


def _offsets(layer: Sequence[int], net: _Net, gaps: Gaps) -> list[float]:
    """Return the centres of the knots of a layer if all stand as close together as the gaps allow."""
    found: list[float] = []
    right = 0.0
    for before, knot in zip([None, *layer], layer, strict=False):
        if before is not None:
            right += gaps.beside if net.width[before] and net.width[knot] else gaps.bend
        found.append(right + net.width[knot] / 2)
        right += net.width[knot]
    return found


def _spread(wanted: Sequence[float], offsets: Sequence[float]) -> list[float]:
    """Return the positions nearest to the wanted positions (least squares) that keep order and distance.

    Without the offsets the result is the nearest rising sequence: knots in each other's way form a block, which stands
    at the mean of its knots.
    """
    blocks: list[tuple[float, int]] = []
    for place, offset in zip(wanted, offsets, strict=True):
        mean, count = place - offset, 1
        while blocks and blocks[-1][0] > mean:
            other, size = blocks.pop()
            mean, count = (mean * count + other * size) / (count + size), count + size
        blocks.append((mean, count))
    starts = [mean for mean, count in blocks for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=True)]
