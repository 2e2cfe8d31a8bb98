"""A table of filters as a web page, in a single file.

The picture of `table_svg` is a part of the page; a script adds zoom, search, selection and tests of events. The data
for the script is JSON in which no character can end the element around it. A content security policy lets only this
script run, so a filter that looks like HTML stays text in any case.
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
    """A tested event, with the places of the filters that match in Python."""

    text: str
    matched: list[int]


def tried(graph: CoverGraph, text: str, event: Event) -> Tried:
    """Match an event with the filters of a graph."""
    return Tried(text, graph.matching(event))


def page(shown: Picture, title: str, structure: str, events: Sequence[Tried] = ()) -> str:
    """Return the page of a table, with all data in the file."""
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
    """Return all data that the script of the page needs."""
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
    """Return the graph as JSON for other programs."""
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
    """Return a number with its noun, in the singular or the plural."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
