"""Draw the diagrams of docs/architecture.md: `python -m tools.diagrams` writes docs/img/way-*.svg.

A diagram is a path of stations; an arrow leads from each station to the next. A station names its room (a package of
Fieldfare) and the step that an event or a filter takes there. The files are SVG without fonts, scripts or links, so
that they look the same in the documentation, on GitHub and offline.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parents[1] / "docs" / "img"
WIDTH, HEIGHT, GAP, ROW = 176, 64, 34, 104
"""of a station, and between two stations and two lines, in pixels"""
PER_LINE: Final = 4
STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#1f2d3d}.room{font-weight:600}.step{fill:#5b6b7b;font-size:12px}"
    "rect{fill:#fff;stroke:#7a8fa3;stroke-width:1.4}.end{fill:#e9f1f8}path{stroke:#7a8fa3;stroke-width:1.6;fill:none}"
)


class Station(NamedTuple):
    """A station of a path: the room, and the step there in at most two short lines."""

    room: str
    step: str
    more: str = ""


WAYS: Final[dict[str, tuple[str, tuple[Station, ...]]]] = {
    "way-event-nodes": (
        "The way of an event through nodes",
        (
            Station("client", "publish: the event", "gets a number"),
            Station("protocol", "one frame, MessagePack", "or JSON"),
            Station("node", "connection: decode,", "authorise"),
            Station("core", "step: a batch of", "inputs, one writer"),
            Station("routing", "match: local sessions", "and neighbours"),
            Station("node/storage", "journal entry and rows,", "then: accepted"),
            Station("node", "links send on to the", "next node, same bytes"),
            Station("client", "deliver, then", "acknowledge"),
        ),
    ),
    "way-event-spark": (
        "The way of an event through Spark",
        (
            Station("pipeline/sources", "node, log, files,", "MQTT: raw records"),
            Station("pipeline/table", "normalise: events,", "or quarantine"),
            Station("pipeline/match", "workers map one index", "of subscriptions"),
            Station("matching", "Arrow batch to keys,", "keys to filters"),
            Station("pipeline/job", "micro-batch: a number", "for every sink"),
            Station("pipeline/sinks", "table, folders, node,", "webhooks: once each"),
            Station("pipeline/lake", "history and replay", "through filters"),
            Station("pipeline/statistics", "shares of values,", "for merging"),
        ),
    ),
    "way-subscription": (
        "The way of a subscription",
        (
            Station("client", "subscribe: a text", "or an expression"),
            Station("filters/languages", "parse: a small tree,", "errors with a place"),
            Station("filters", "normal form: largest", "boxes of value sets"),
            Station("node/security", "within the budget and", "the rights?"),
            Station("core", "session: filter, id,", "a row that lasts"),
            Station("matching", "an entry of the", "broker's index"),
            Station("tables", "covered already?", "merge?"),
            Station("protocol", "filter update to the", "neighbours that need it"),
        ),
    ),
}


def svg(title: str, stations: Sequence[Station]) -> str:
    """Return a diagram as SVG. Every second line runs from right to left, so that no arrow crosses the picture."""
    lines = -(-len(stations) // PER_LINE)
    width, height = PER_LINE * (WIDTH + GAP) - GAP + 4, lines * ROW - (ROW - HEIGHT) + 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        ' role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect x="0" y="0" width="{width}" height="{height}" style="fill:#f7f9fb;stroke:none" rx="6"/>',
    ]
    places = [_place(number) for number in range(len(stations))]
    for (x, y), (next_x, next_y) in pairwise(places):
        parts.append(_arrow(x, y, next_x, next_y))
    for number, ((x, y), station) in enumerate(zip(places, stations, strict=True)):
        kind = ' class="end"' if number in (0, len(stations) - 1) else ""
        parts.append(f'<rect{kind} x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="7"/>')
        for line, (words, style) in enumerate(((station.room, "room"), (station.step, "step"), (station.more, "step"))):
            parts.append(f'<text class="{style}" x="{x + 12}" y="{y + 20 + 17 * line}">{escape(words)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _place(number: int) -> tuple[int, int]:
    line, column = divmod(number, PER_LINE)
    if line % 2:
        column = PER_LINE - 1 - column
    return 2 + column * (WIDTH + GAP), 2 + line * ROW


def _arrow(x: int, y: int, next_x: int, next_y: int) -> str:
    middle = y + HEIGHT // 2
    if next_y != y:
        at, end = x + WIDTH // 2, next_y - 2
        return f'<path d="M{at} {y + HEIGHT}V{end}M{at - 5} {end - 7}L{at} {end}L{at + 5} {end - 7}"/>'
    if next_x > x:
        return f'<path d="M{x + WIDTH} {middle}H{next_x - 2}m-7 -5l7 5l-7 5"/>'
    return f'<path d="M{x} {middle}H{next_x + WIDTH + 2}m7 -5l-7 5l7 5"/>'


def main() -> None:
    """Write all diagrams."""
    for name, (title, stations) in WAYS.items():
        (FOLDER / f"{name}.svg").write_text(svg(title, stations))


if __name__ == "__main__":
    main()
