"""A table as a web page to walk around in: one file, nothing from elsewhere.

The picture of `table_svg` stands in it as it is; a script adds zooming, searching, choosing and testing events. What
the script needs to know comes as JSON, in which no character can end the element it stands in. A content security
policy lets only this one script run, so a filter that looks like HTML stays a text whatever happens.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from fieldfare.cli.pages.browser_filters import portable
from fieldfare.cli.pages.table_svg import MOST_MERGERS, Picture, arc, colour, interface_names, svg
from fieldfare.cli.pages.template import made
from fieldfare.events import Event
from fieldfare.tables.cover_graph import CoverGraph


class Tried(NamedTuple):
    """An event that was given, and the places of the filters it matches: these answers are Python's."""

    text: str
    matched: list[int]


def tried(graph: CoverGraph, text: str, event: Event) -> Tried:
    """Try an event on a graph."""
    return Tried(text, graph.matching(event))


def page(shown: Picture, title: str, structure: str, events: Sequence[Tried] = ()) -> str:
    """The whole page."""
    graph = shown.graph
    words = {
        "COUNTS": f"{count(len(graph.filters), 'filter')} · {count(len(graph.roots), 'root')} · {structure}",
        "SVG": svg(shown, style=""),
    }
    return made(
        "table/page.html", title, words, facts(shown, structure, events),
        styles=["table/page.css"], scripts=["table/matcher.js", "table/page.js"],
    )  # fmt: skip


def facts(shown: Picture, structure: str, events: Sequence[Tried] = ()) -> dict[str, Any]:
    """Everything that the script of the page knows of the table."""
    graph = shown.graph
    names = interface_names(graph)
    number_of = {name: number for number, name in enumerate(names)}
    return {
        "structure": structure,
        "interfaces": [{"name": name, "colour": colour(number)} for number, name in enumerate(names)],
        "nodes": [
            {"filter": str(filter), "interfaces": [number_of[name] for name in whose], "wanted": portable(filter)}
            for filter, whose in zip(graph.filters, graph.interfaces, strict=True)
        ],
        "edges": graph.edges,
        "mergers": [
            {"pair": [merge.first, merge.second], "filter": str(merge.filter), "arc": arc(merge, shown)}
            for merge in graph.mergers
        ],
        "mergersKnown": graph.complete,
        "mergersDrawn": len(graph.mergers) <= MOST_MERGERS,
        "events": [one._asdict() for one in events],
    }


def as_json(graph: CoverGraph, structure: str, events: Sequence[Tried] = ()) -> str:
    """The graph for other programs."""
    tree = {
        "structure": structure,
        "nodes": [
            {"filter": str(filter), "interfaces": whose}
            for filter, whose in zip(graph.filters, graph.interfaces, strict=True)
        ],
        "roots": graph.roots,
        "covers": graph.edges,
        "mergers": [{"pair": [one.first, one.second], "filter": str(one.filter)} for one in graph.mergers],
        "events": [{"event": json.loads(one.text), "matches": one.matched} for one in events],
    }
    return json.dumps(tree, ensure_ascii=False, indent=2)


def count(number: int, what: str) -> str:
    """So many of them."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
