"""A table of filters as a picture: boxes with filters, lines from covers to covered filters, a dot for each interface.

The picture is an SVG element that loads nothing from elsewhere. The colours follow the reader's choice of light or
dark. The page of `table` contains the same picture.
"""

from __future__ import annotations

import colorsys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from fieldfare.cli.formats.values import printable
from fieldfare.tables.cover_graph import CoverGraph, RootMerge
from fieldfare.tables.graph_layout import Drawing, Point, Size, draw

MOST_MERGERS: Final = 60
"""with more mergers, their lines would hide the picture: the page shows only the mergers of a selected filter"""

_LETTER: Final = 6.7
"""width of a letter at 11 pixels, in all usual fonts of fixed width"""
_LINE: Final = 15
_PAD: Final = 10
_DOT: Final = 13
_WIDEST: Final = 32
_LINES: Final = 5
_MOST_DOTS: Final = 12
_MARGIN: Final = 40

STYLE: Final = """
.table { --paper: #fbfaf7; --ink: #23303b; --faint: #6c7a86; --box: #ffffff; --line: #b9c2c9; --root: #2f6f8f;
  --merge: #b07a1e; --yes: #2e8b57; --maybe: #b07a1e;
  font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; background: var(--paper); }
@media (prefers-color-scheme: dark) {
  .table { --paper: #14191e; --ink: #dbe3e8; --faint: #8b99a5; --box: #1d242b; --line: #46535e; --root: #6fb3d3;
    --merge: #e0b060; --yes: #5fce90; --maybe: #e0b060; } }
.table .box { fill: var(--box); stroke: var(--line); stroke-width: 1; }
.table .root .box { stroke: var(--root); stroke-width: 2; }
.table text { fill: var(--ink); }
.table .more { fill: var(--faint); }
.table .edge { fill: none; stroke: var(--line); stroke-width: 1.3; }
.table .merger { fill: none; stroke: var(--merge); stroke-width: 1.3; stroke-dasharray: 5 4; }
.table .matched .box { stroke: var(--yes); stroke-width: 3; }
.table .edge.matched { stroke: var(--yes); stroke-width: 2.4; }
"""


@dataclass(frozen=True, slots=True)
class Picture:
    """A graph with the places and sizes of its boxes and lines."""

    graph: CoverGraph
    labels: tuple[tuple[str, ...], ...]
    sizes: tuple[Size, ...]
    drawing: Drawing


def picture(graph: CoverGraph) -> Picture:
    """Compute the layout of a graph."""
    labels = tuple(_label(str(filter)) for filter in graph.filters)
    sizes = tuple(map(_size, labels, graph.interfaces))
    links = [(merge.first, merge.second) for merge in drawn_mergers(graph)]
    return Picture(graph, labels, sizes, draw(sizes, graph.edges, links=links))


def svg(shown: Picture, matched: Iterable[int] = (), *, style: str = STYLE) -> str:
    """Return the SVG element; the boxes of matched filters have a heavy border."""
    graph, drawing = shown.graph, shown.drawing
    lit = set(matched)
    names = interface_names(graph)
    width, height = drawing.size
    view = f"{-_MARGIN} {-_MARGIN} {width + 2 * _MARGIN:.0f} {height + 2 * _MARGIN:.0f}"
    size = f'width="{width + 2 * _MARGIN:.0f}" height="{height + 2 * _MARGIN:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="table" viewBox="{view}" {size} role="img">',
            f"<title>{len(graph.filters)} filters, {len(graph.roots)} of them roots</title>",
            f"<style>{style}</style>" if style else "",
            '<g id="world">',
            *(_edge(n, *edge, drawing.routes[n], lit) for n, edge in enumerate(graph.edges)),
            *(_merger(n, merge, shown) for n, merge in enumerate(drawn_mergers(graph))),
            *(_box(place, shown, names, lit) for place in range(len(graph.filters))),
            "</g>",
            "</svg>",
        ]
    )


def drawn_mergers(graph: CoverGraph) -> tuple[RootMerge, ...]:
    """Return the mergers, or none if there are too many to draw."""
    return graph.mergers if len(graph.mergers) <= MOST_MERGERS else ()


def interface_names(graph: CoverGraph) -> list[str]:
    """Return all interfaces, in the order of their first filters; the order decides on the colours."""
    return list(dict.fromkeys(name for names in graph.interfaces for name in names))


def colour(number: int) -> str:
    """Return a colour that differs from the colours of near numbers, on light and on dark: hues by the golden angle."""
    red, green, blue = colorsys.hls_to_rgb(number * 137.508 / 360 % 1, (0.5, 0.62, 0.4)[number // 12 % 3], 0.6)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _label(text: str) -> tuple[str, ...]:
    """Return a filter in a few short lines; the page shows the whole text on request."""
    lines = textwrap.wrap(printable(text), _WIDEST, break_on_hyphens=False) or [""]
    return tuple(lines) if len(lines) <= _LINES else (*lines[: _LINES - 1], lines[_LINES - 1][: _WIDEST - 2] + " …")


def _size(label: Sequence[str], interfaces: Sequence[str]) -> Size:
    letters = max(map(len, label)) * _LETTER
    dots = min(len(interfaces), _MOST_DOTS) * _DOT + (28 if len(interfaces) > _MOST_DOTS else 0)
    height = 2 * _PAD + _LINE * len(label) - 4 + (_DOT if interfaces else 0)
    return Size(round(max(letters, dots, 40) + 2 * _PAD, 1), height)


def _box(place: int, shown: Picture, names: Sequence[str], lit: set[int]) -> str:
    (x, y), (width, height) = shown.drawing.corners[place], shown.sizes[place]
    root = place not in {lower for _, lower in shown.graph.edges}
    kinds = "node" + (" root" if root else "") + (" matched" if place in lit else "")
    text = printable(str(shown.graph.filters[place]))
    lines = [
        f'<text x="{_PAD}" y="{_PAD + 9 + number * _LINE}">{escape(line)}</text>'
        for number, line in enumerate(shown.labels[place])
    ]
    whose = shown.graph.interfaces[place]
    dots = [
        f'<circle cx="{_PAD + 4 + number * _DOT}" cy="{height - _PAD - 1}" r="4.5" fill="{colour(names.index(name))}">'
        f"<title>{escape(printable(name))}</title></circle>"
        for number, name in enumerate(whose[:_MOST_DOTS])
    ]
    if len(whose) > _MOST_DOTS:
        left = _PAD + _MOST_DOTS * _DOT
        dots.append(f'<text class="more" x="{left}" y="{height - _PAD + 3}">+{len(whose) - _MOST_DOTS}</text>')
    return "".join(
        [
            f'<g class="{kinds}" data-place="{place}" transform="translate({x:g} {y:g})">',
            f'<title>{escape(text)}</title><rect class="box" width="{width:g}" height="{height:g}" rx="7"/>',
            *lines,
            *dots,
            "</g>",
        ]
    )


def _edge(number: int, upper: int, lower: int, route: Sequence[Point], lit: set[int]) -> str:
    kinds = "edge matched" if upper in lit and lower in lit else "edge"
    return f'<path class="{kinds}" data-edge="{number}" d="{_curve(route)}"/>'


def _curve(route: Sequence[Point]) -> str:
    """Return a curve from point to point that leaves and arrives straight down."""
    (x, y), *others = route
    d = f"M{x:g} {y:g}"
    for point in others:
        middle = (y + point.y) / 2
        d += f"C{x:g} {middle:g} {point.x:g} {middle:g} {point.x:g} {point.y:g}"
        x, y = point
    return d


def _merger(number: int, merge: RootMerge, shown: Picture) -> str:
    return f'<path class="merger" data-merger="{number}" d="{arc(merge, shown)}"/>'


def arc(merge: RootMerge, shown: Picture) -> str:
    """Return a bow above the boxes, from the middle of a box to the middle of another."""
    (x1, y1), (x2, y2) = (
        Point(shown.drawing.corners[place].x + shown.sizes[place].width / 2, shown.drawing.corners[place].y)
        for place in (merge.first, merge.second)
    )
    rise = min(36.0, 12 + abs(x2 - x1) / 16)
    return f"M{x1:g} {y1:g}C{x1:g} {y1 - rise:g} {x2:g} {y2 - rise:g} {x2:g} {y2:g}"
