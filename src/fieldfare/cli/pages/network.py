"""A run of a simulated network as a web page: messages move along links, in a single file.

Places and counts are computed here; the script only shows the state at a time. Of very many messages only every second,
third and so on is in the page, and the page says so; counts are always exact.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Sequence
from html import escape
from importlib import import_module
from typing import Any, Final, TypeAlias

from fieldfare.cli.formats.outcome import counted
from fieldfare.cli.formats.values import printable
from fieldfare.cli.pages.template import made
from fieldfare.simulation import trace as records
from fieldfare.simulation.scenario import Result
from fieldfare.simulation.topologies import Topology

MOST_MESSAGES: Final = 15_000
MOST_ASKED: Final = 5_000
MOST_VIOLATIONS: Final = 100
_NUMBERS: Final = 40_000
"""counts in a page at most, roughly"""
_WIDTH: Final = 1000.0
_HEIGHT: Final = 640.0
_EDGE: Final = 50.0
_SPEEDS: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
_COUNTERS: Final = (
    "events published",
    "events sent",
    "events received",
    "deliveries",
    "filter updates sent",
    "filter updates received",
    "filters added by them",
    "filters removed by them",
)
Point: TypeAlias = tuple[float, float]


def page(result: Result, title: str) -> str:
    """Return the page of a run, with all data in the file."""
    places = layout(result.topology)
    known = facts(result, places)
    words = {
        "COUNTS": escape(" ".join(filter(None, (headline(result), warning(result))))),
        "FIGURES": "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in shown_figures(result)),
        "SAMPLED": _sampled(known),
        "SPEEDS": _speeds(result.seconds),
        "END": f"{result.seconds}",
        "SVG": _picture(result.topology, places, result.resting),
        "CHART": _chart(known),
    }
    return made(
        "network/page.html", title, words, known,
        styles=["table/page.css", "network/page.css"], scripts=["network/timeline.js", "network/page.js"],
    )  # fmt: skip


def shown_figures(result: Result) -> list[tuple[str, str]]:
    """Return the figures of a run with their names, formatted for people."""
    found = result.figures
    rows = [
        ("events", f"{found.events:,}"),
        ("deliveries", f"{found.deliveries:,}"),
        ("messages", f"{found.messages:,}"),
        ("… with events", f"{found.event_messages:,}"),
        ("… about filters", f"{found.admin_messages:,}"),
        ("… about links", f"{found.other_messages:,}"),
        ("… lost", f"{found.lost_messages:,}"),
        ("table entries", f"{found.table_entries:,}"),
        ("… of the largest", f"{found.largest_table:,}"),
        ("false positives", f"{found.false_positives:,}"),
        ("latency, mean", _milliseconds(found.latency_mean)),
        ("latency, p99", _milliseconds(found.latency_p99)),
    ]
    refused = [("refused", f"{found.refused:,}")] if found.refused else []
    if found.violations is None or found.due is None or found.judged is None:
        return [*rows, *refused, ("violations", "not checked")]
    judged = [("deliveries due", f"{found.due:,}"), ("… of them judged", f"{found.judged:,}")]
    return [*rows, *refused, *judged, ("violations", f"{found.violations:,}")]


def warning(result: Result) -> str:
    """Return a warning if the absence of violations proves nothing, because no delivery of the run could be judged."""
    found = result.figures
    if found.judged is None or found.judged > 0:
        return ""
    if not found.due:
        return "NOTHING WAS JUDGED: no client had subscribed to any event when it was published."
    return (
        f"NOTHING WAS JUDGED: {found.due:,} deliveries were due, but links, brokers or subscriptions changed before "
        "the network came to rest. Let events be published while it is quiet."
    )


def _milliseconds(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1000:,.1f} ms"


def headline(result: Result) -> str:
    """Return a line with the size, strategy and duration of a run."""
    brokers, links = counted(len(result.topology.brokers), "broker"), counted(len(result.topology.edges), "link")
    return f"{brokers} · {links} · {result.scenario.strategy} · {result.seconds:.1f} s"


# Places


def layout(topology: Topology) -> list[Point]:
    """Return a place for each broker: by networkx, as if links were springs, or else in a circle."""
    number = {broker: place for place, broker in enumerate(topology.brokers)}
    turns = [2 * math.pi * place / len(number) for place in number.values()]
    places = [(math.cos(turn), math.sin(turn)) for turn in turns]
    try:
        networkx = import_module("networkx")
    except ImportError:
        return _fitted(places)
    graph = networkx.Graph()
    graph.add_nodes_from(number.values())
    graph.add_edges_from((number[a], number[b]) for a, b, _ in topology.edges)
    if 1 < len(number) < 500:  # beyond, networkx asks for scipy
        first = _first_places(networkx, graph)
        found = networkx.spring_layout(graph, pos=first, seed=1, iterations=150)
        places = [(float(x), float(y)) for x, y in (found[place] for place in range(len(number)))]
    return _fitted(places)


def _first_places(networkx: Any, graph: Any) -> Any:
    """Return places without crossing links if the graph has such places: springs then seldom cross links."""
    planar, _ = networkx.check_planarity(graph)
    return networkx.planar_layout(graph) if planar else networkx.circular_layout(graph)


def _fitted(places: Sequence[Point]) -> list[Point]:
    """Return the places stretched to the size of the picture."""
    xs, ys = [x for x, _ in places], [y for _, y in places]

    def fit(value: float, low: float, high: float, size: float) -> float:
        share = (value - low) / (high - low) if high - low > 1e-9 else 0.5
        return round(_EDGE + share * (size - 2 * _EDGE), 1)

    return [(fit(x, min(xs), max(xs), _WIDTH), fit(y, min(ys), max(ys), _HEIGHT)) for x, y in places]


# Data for the script


def facts(result: Result, places: Sequence[Point]) -> dict[str, Any]:
    """Return all data that the script of the page needs."""
    number = {broker: place for place, broker in enumerate(result.topology.brokers)}
    bins = min(200, max(20, _NUMBERS // (len(_COUNTERS) * len(number))))
    width = (result.seconds or 1.0) / bins
    counts = [[[0] * bins for _ in _COUNTERS] for _ in number]
    rates = [[0] * bins, [0] * bins]
    messages: list[tuple[float, int, int, int]] = []
    changes: list[tuple[float, str, int, int]] = []

    def count(counter: int, broker: str, time: float, by: int = 1) -> None:
        counts[number[broker]][counter][min(int(time / width), bins - 1)] += by

    for record in result.trace:
        match record:
            case records.Published():
                count(0, record.broker, record.time)
            case records.Delivered():
                count(3, record.broker, record.time)
            case records.Forwarded() | records.Told():
                tell = isinstance(record, records.Told)
                count(4 if tell else 1, record.broker, record.time)
                count(5 if tell else 2, record.neighbour, record.time)
                if isinstance(record, records.Told):
                    count(6, record.neighbour, record.time, record.added)
                    count(7, record.neighbour, record.time, record.removed)
                rates[tell][min(int(record.time / width), bins - 1)] += 1
                messages.append((round(record.time, 4), number[record.broker], number[record.neighbour], int(tell)))
            case records.Up() | records.Down():
                what = "up" if isinstance(record, records.Up) else "down"
                changes.append((record.time, what, number[record.broker], number[record.neighbour]))
            case records.Crashed() | records.Restarted():
                what = "crashed" if isinstance(record, records.Crashed) else "restarted"
                changes.append((record.time, what, number[record.broker], -1))
    every = -(-len(messages) // MOST_MESSAGES) or 1
    asked = _asked(result, number)
    violations = result.violations or []
    return {
        "seconds": result.seconds,
        "latency": result.scenario.links.latency,
        "brokers": [{"name": printable(name), "x": x, "y": y} for name, (x, y) in zip(number, places, strict=True)],
        "links": [sorted((number[a], number[b])) for a, b, _ in result.topology.edges],
        "messages": messages[::every],
        "every": every,
        "changes": changes,
        "counters": _COUNTERS,
        "counts": counts,
        "rates": rates,
        "width": width,
        "asked": asked[:MOST_ASKED],
        "unasked": max(0, len(asked) - MOST_ASKED),
        "violations": [
            (result.trace[one.order].time, one.rule, printable(one.problem)) for one in violations[:MOST_VIOLATIONS]
        ],
    }


def _asked(result: Result, number: dict[str, int]) -> list[tuple[float, float | None, int, str, str, str]]:
    """Return subscriptions and advertisements: begin, end, number of the broker, client, kind, filter."""
    held: dict[tuple[str, str, str], tuple[float, int, str]] = {}
    found: list[tuple[float, float | None, int, str, str, str]] = []

    def end(time: float | None, keys: list[tuple[str, str, str]]) -> None:
        for client, kind, id in keys:
            since, broker, text = held.pop((client, kind, id))
            found.append((since, time, broker, printable(client), kind, printable(text)))

    for record in result.trace:
        match record:
            case records.Subscribed() | records.Advertised():
                key = record.client, "wanted" if isinstance(record, records.Subscribed) else "promised", record.id
                end(record.time, [key] if key in held else [])
                held[key] = record.time, number[record.broker], str(record.filter)
            case records.Unsubscribed() | records.Unadvertised():
                key = record.client, "wanted" if isinstance(record, records.Unsubscribed) else "promised", record.id
                end(record.time, [key] if key in held else [])
            case records.Left():
                end(record.time, [key for key in held if key[0] == record.client])
            case records.Restarted(kept=False):
                end(record.time, [key for key, one in held.items() if one[1] == number[record.broker]])
    end(None, list(held))
    return sorted(found, key=lambda one: one[:1])


# Pieces of the page


def _picture(topology: Topology, places: Sequence[Point], resting: Collection[tuple[str, str]]) -> str:
    where = dict(zip(topology.brokers, places, strict=True))
    radius = min(14.0, max(4.0, 180 / math.sqrt(len(where)) / 3))
    links = "".join(
        f'<line class="link{" resting" * ((a, b) in resting)}" x1="{where[a][0]}" y1="{where[a][1]}"'
        f' x2="{where[b][0]}" y2="{where[b][1]}"/>'
        for a, b, _ in topology.edges
    )
    brokers = "".join(
        f'<g class="broker" tabindex="0" role="button" transform="translate({x} {y})"><circle r="{radius:.1f}"/>'
        f'<text y="{radius + 13:.1f}">{escape(printable(name))}</text></g>'
        for name, (x, y) in where.items()
    )
    return f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}">{links}<g id="messages"></g>{brokers}</svg>'


def _chart(known: dict[str, Any]) -> str:
    """Return a chart of messages a second, filter updates above events, with a line for each fault."""
    events, tells = known["rates"]
    most = max(1, *(a + b for a, b in zip(events, tells, strict=True)))
    step = _WIDTH / len(events)
    lower = [50 * one / most for one in events]
    upper = [below + 50 * one / most for below, one in zip(lower, tells, strict=True)]
    faults = "".join(
        f'<line class="fault" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="50"><title>{what} at {time:.2f} s</title></line>'
        for time, what, *_ in known["changes"]
        if (x := _WIDTH * time / (known["seconds"] or 1)) > 0
    )
    label = f"messages a second, at most {most / known['width']:,.0f}"
    return (
        f'<svg id="chart" viewBox="0 0 {_WIDTH:g} 50" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f'<title>{label}</title><path class="events" d="{_area(lower, [0.0] * len(lower), step)}"/>'
        f'<path class="tells" d="{_area(upper, lower, step)}"/>{faults}'
        f'<g id="cursor"><line x1="0" x2="0" y1="0" y2="50"/></g></svg><span class="hint">{label}</span>'
    )


def _area(upper: Sequence[float], lower: Sequence[float], step: float) -> str:
    there = "".join(f"L{i * step:.1f} {50 - y:.1f}H{(i + 1) * step:.1f}" for i, y in enumerate(upper))
    back = "".join(f"V{50 - y:.1f}H{i * step:.1f}" for i, y in reversed(list(enumerate(lower))))
    return f"M0 {50 - lower[0]:.1f}{there}{back}Z"


def _speeds(seconds: float) -> str:
    """Return the choice of speeds; at the first choice the run takes about a minute."""
    first = max(0, bisect_right(_SPEEDS, seconds / 40) - 1)
    return "".join(
        f'<option value="{speed:g}"{" selected" if place == first else ""}>× {speed:g}</option>'
        for place, speed in enumerate(_SPEEDS)
    )


def _sampled(known: dict[str, Any]) -> str:
    said = [f"One of {known['every']} messages is shown; all are counted."] if known["every"] > 1 else []
    if known["unasked"]:
        said.append(f"{known['unasked']:,} later subscriptions are left out.")
    return "".join(f'<p class="hint">{escape(one)}</p>' for one in said)
