"""A table as a web page to walk around in: one file, nothing from elsewhere.

The picture of `table_svg` stands in it as it is; a script adds zooming, searching, choosing and testing events. What
the script needs to know comes as JSON, in which no character can end the element it stands in. A content security
policy lets only this one script run, so a filter that looks like HTML stays a text whatever happens.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any, Final, NamedTuple

from fieldfare.cli.portable import portable
from fieldfare.cli.table_svg import MOST_MERGERS, STYLE, Picture, arc, colour, interface_names, svg
from fieldfare.cli.values import printable
from fieldfare.events import Event
from fieldfare.tables.covergraph import CoverGraph


class Tried(NamedTuple):
    """An event that was given, and the places of the filters it matches: these answers are Python's."""

    text: str
    matched: list[int]


def tried(graph: CoverGraph, text: str, event: Event) -> Tried:
    """Try an event on a graph."""
    return Tried(text, graph.matching(event))


def page(shown: Picture, title: str, structure: str, events: Sequence[Tried] = ()) -> str:
    """The whole page."""
    style = STYLE + _read("page.css")
    script = _read("matcher.js") + _read("page.js")
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    graph = shown.graph
    words = {
        "TITLE": escape(printable(title)),
        "POLICY": escape(policy),
        "COUNTS": f"{count(len(graph.filters), 'filter')} · {count(len(graph.roots), 'root')} · {structure}",
        "STYLE": style,
        "SCRIPT": script,
        "DATA": _for_script(facts(shown, structure, events)),
        "SVG": svg(shown, style=""),
    }
    text = _read("page.html")
    parts = text.split("@@")  # not replace(): what is put in is never looked through again
    return "".join(words[part] if number % 2 else part for number, part in enumerate(parts))


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


_ESCAPES: Final = str.maketrans({char: f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"})


def _for_script(tree: object) -> str:
    """JSON that may stand in a script element: nothing in it looks like a tag."""
    return json.dumps(tree, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _read(name: str) -> str:
    return (resources.files("fieldfare") / "data" / "table" / name).read_text("utf-8")


def count(number: int, what: str) -> str:
    """So many of them."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
