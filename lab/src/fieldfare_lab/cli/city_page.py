"""A film of a city as a web page: taxis drive, events travel over links, in one file with nothing from elsewhere.

Python finds and counts everything; the script of the page only shows the state at a time. Every place that an event
passes is a node of the picture: antennas first, then movers, then people who stay. A link delays an event too little to
be seen, so the page shows the steps of an event one after the other: a message is a step, with the time of the first
step. Of very many events the page holds only every second, third and so on; counters are always exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, TypeAlias

from fieldfare.cli.formats.outcome import counted
from fieldfare.cli.formats.values import printable
from fieldfare.cli.pages.template import made
from fieldfare.simulation import trace as records
from fieldfare.simulation.trace import Record
from fieldfare_lab.mobility import streets
from fieldfare_lab.mobility.film import DISPATCHER, OFFICE, ROOT, Film

MOST_MESSAGES: Final = 40_000
WIDTH: Final = 0.5
"""seconds in a bin of the counters"""
_SOON: Final = 1.0
"""seconds; a later delivery has waited for a handover, so the page shows the delivery at its own time"""
_SPEEDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
_KINDS: Final = ("taxi", "ride", "traffic")
_EDGE: Final = 12
Step: TypeAlias = tuple[int, int, int, int, int]
"""hundredths of a second, number of earlier steps, node from, node to, kind of event"""


def page(film: Film, title: str) -> str:
    """Return the HTML of the film, with styles, scripts and all facts inline."""
    known = facts(film)
    every = known["every"]
    words = {
        "COUNTS": escape(headline(film)),
        "SAMPLED": f'<p class="hint">One of {every} events is shown; all are counted.</p>' * (every > 1),
        "SPEEDS": "".join(
            f'<option value="{speed:g}"{" selected" * (speed == 2)}>× {speed:g}</option>' for speed in _SPEEDS
        ),
        "END": f"{film.seconds:g}",
        "SVG": _picture(film),
    }
    return made(
        "fieldfare_lab:city/page.html", title, words, known,
        styles=["table/page.css", "fieldfare_lab:city/page.css"],
        scripts=["network/timeline.js", "fieldfare_lab:city/page.js"],
    )  # fmt: skip


def headline(film: Film) -> str:
    """Return the size of the run in a line: brokers, taxis, seconds."""
    brokers, taxis = counted(len(film.topology.brokers), "broker"), counted(len(film.drives) - 1, "taxi")
    return f"{brokers} · {taxis} · {film.seconds:.0f} s"


def totals(film: Film) -> list[tuple[str, int]]:
    """Return the names and final values of the counters."""
    return [(name, len(times)) for name, times in _counted(film).items()]


# The facts of the run, for the script of the page


def facts(film: Film) -> dict[str, Any]:
    """Return everything that the script of the page knows of the run; the keys are those of `city/page.js`."""
    still = [name for name in film.places if name not in film.topology.brokers]
    nodes = [*film.topology.brokers, *film.drives, *still]
    number = {name: place for place, name in enumerate(nodes)}
    steps, every = _thinned(_steps(film, number))
    bins = int(film.seconds / WIDTH) + 1
    mine: defaultdict[str, list[Record]] = defaultdict(list)
    for record in film.trace:
        mine[getattr(record, "client", "")].append(record)
    return {
        "seconds": film.seconds,
        "width": WIDTH,
        "places": [film.places.get(name, (0, 0)) for name in nodes],
        "names": [printable(name) for name in film.topology.brokers],
        "links": [(number[a], number[b]) for a, b, _ in film.topology.edges],
        "movers": [_mover(film, name, mine[name], number) for name in film.drives],
        "messages": steps,
        "longest": max((step for _, step, *_ in steps), default=0),
        "every": every,
        "handovers": [
            (round(one.time, 2), round(one.done, 2), number[one.client], number[one.source], number[one.target])
            for one in sorted(film.handovers)
        ],
        "counts": {name: _binned(times, bins) for name, times in _counted(film).items()},
        "violations": [
            (film.trace[one.order].time - film.start, one.rule, printable(one.problem)) for one in film.violations[:100]
        ],
    }


def _mover(film: Film, name: str, mine: Iterable[Record], number: Mapping[str, int]) -> dict[str, Any]:
    """A mover: the way, and the times of each change, from the records of the mover."""
    way = film.drives[name]
    contacts = [(0.0, number[streets.contacts(way)[0][1]])]
    asked: list[tuple[float, str, str]] = []
    got: list[tuple[float]] = []
    for record in mine:
        time = round(max(0.0, record.time - film.start), 2)
        match record:
            case records.Departed():
                contacts.append((time, -1))
            case records.Arrived():
                contacts.append((time, number[record.broker]))
            case records.Subscribed():
                asked.append((time, record.id, str(record.filter)))
            case records.Delivered():
                got.append((time,))
    return {
        "name": printable(name),
        "taxi": name != DISPATCHER,
        "way": [(round(one.time, 2), round(one.x), round(one.y)) for one in way],
        "contacts": contacts,
        "asked": asked,
        "free": [(0.0, True), *((round(time, 2), free) for time, taxi, free in film.states if taxi == name)],
        "waiting": [(0.0, 0), *((round(time, 2), count) for time, client, count in film.waiting if client == name)],
        "got": got,
        "moved": [(round(one.time, 2),) for one in film.handovers if one.client == name],
    }


def _steps(film: Film, number: Mapping[str, int]) -> list[list[Step]]:
    """The steps of each event: to the antenna of its publisher, over links, to the subscribers."""
    found: dict[tuple[str, int], list[Step]] = {}
    first: dict[tuple[str, int], float] = {}
    """time at which the event leaves its first broker: before, the event may have waited for a handover"""
    depth: defaultdict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    kind: dict[tuple[str, int], int] = {}
    for record in film.trace:
        match record:
            case records.Published():
                id = record.client, record.sequence
                depth[id][record.broker] = 1
                kind[id] = _KINDS.index(str(record.event["type"]))
                step = _hundredths(film, record), 0, number[record.client], number[record.broker], kind[id]
                found[id] = [step]
            case records.Forwarded():
                id = record.publisher, record.sequence
                before = depth[id][record.broker]
                depth[id][record.neighbour] = before + 1
                start = first.setdefault(id, record.time)
                time = round((start - film.start) * 100)
                found[id].append((time, before, number[record.broker], number[record.neighbour], kind[id]))
            case records.Delivered():
                id = record.publisher, record.sequence
                start = first.setdefault(id, record.time)
                soon = record.broker in depth[id] and record.time - start < _SOON
                time = round((start - film.start) * 100) if soon else _hundredths(film, record)
                before = depth[id][record.broker] if soon else 0
                found[id].append((time, before, number[record.broker], number[record.client], kind[id]))
    return list(found.values())


def _hundredths(film: Film, record: Record) -> int:
    return round((record.time - film.start) * 100)


def _thinned(events: Sequence[list[Step]]) -> tuple[list[Step], int]:
    """The steps of every n-th event in order, and n, so that the page holds at most MOST_MESSAGES steps."""
    every = -(-sum(map(len, events)) // MOST_MESSAGES) or 1
    return sorted(step for event in events[::every] for step in event), every


def _counted(film: Film) -> dict[str, list[float]]:
    """The times of everything that a counter of the page counts."""
    lost = [film.trace[one.order].time - film.start for one in film.violations if one.rule == "liveness"]
    return {
        "published": [r.time - film.start for r in film.trace if isinstance(r, records.Published)],
        "delivered": [r.time - film.start for r in film.trace if isinstance(r, records.Delivered)],
        "handovers": [one.done for one in film.handovers],
        "lost": lost,
    }


def _binned(times: Iterable[float], bins: int) -> list[int]:
    found = [0] * bins
    for time in times:
        found[min(int(time / WIDTH), bins - 1)] += 1
    return found


# The picture


def _picture(film: Film) -> str:
    """The SVG with everything that stands still, and empty groups that the script fills with movers and messages."""
    size = streets.SIZE
    cells = "".join(_cell(cell, *streets.centre(cell)) for cell in streets.cells())
    roads = "".join(_line("street", a, b) for a, b in streets.streets())
    mouths = "".join(f'<circle class="mouth" cx="{x:g}" cy="{y:g}" r="8"/>' for x, y in streets.TUNNEL)
    x, y = streets.TUNNEL[1]
    tunnel = (
        _line("tunnel", *streets.TUNNEL)
        + mouths
        + f'<text class="cellname" x="{x - 55:g}" y="{y - 14:g}">tunnel</text>'
    )
    links = "".join(_line("link", film.places[a], film.places[b]) for a, b, _ in film.topology.edges)
    brokers = "".join(_broker(name, *film.places[name]) for name in film.topology.brokers)
    people = "".join(_person(name, *place) for name, place in film.places.items() if name not in film.topology.brokers)
    return (
        f'<svg viewBox="{-_EDGE} {-_EDGE} {size + 2 * _EDGE} {size + 2 * _EDGE}">{cells}{roads}{tunnel}{links}'
        f'<g id="tethers"></g><g id="handovers"></g>{brokers}{people}<g id="movers"></g><g id="messages"></g></svg>'
    )


def _line(kind: str, a: streets.Point, b: streets.Point) -> str:
    return f'<line class="{kind}" x1="{a[0]:g}" y1="{a[1]:g}" x2="{b[0]:g}" y2="{b[1]:g}"/>'


def _cell(name: str, x: float, y: float) -> str:
    side, half = streets.CELL, streets.CELL / 2
    return (
        f'<rect class="cell" data-cell="{name}" x="{x - half:g}" y="{y - half:g}" width="{side}" height="{side}"/>'
        f'<text class="cellname" x="{x:g}" y="{y - half + 20:g}">{name}</text>'
    )


def _person(name: str, x: float, y: float) -> str:
    kind, title = "office" if name == OFFICE else "customer", escape(printable(name))
    return f'<rect class="{kind}" x="{x - 6:g}" y="{y - 6:g}" width="12" height="12"><title>{title}</title></rect>'


def _broker(name: str, x: float, y: float) -> str:
    if name in streets.cells():
        shape = '<path class="waves" d="M-11 -7a13 13 0 0 0 0 14M11 -7a13 13 0 0 1 0 14"/><circle r="6"/>'
    else:
        half = 10 if name == ROOT else 7
        shape = f'<rect x="{-half}" y="{-half}" width="{2 * half}" height="{2 * half}" rx="3"/>'
    return f'<g class="broker" transform="translate({x:g} {y:g})">{shape}<title>{escape(name)}</title></g>'
