"""The movement graph of the setting `places.graph`: a file in TOML or JSON, with the places a step away for each place.

    "rebeca-drive 100" = ["rebeca-drive 200", "main street 1"]
    "main street 1" = ["main street 2"]

A step leads both ways, so one of the two directions is enough. A place that is only named as a neighbour is a place.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from fieldfare.node.config.settings import PlacesSettings
from fieldfare.routing.places import Graph, Places
from fieldfare.toml import TomlError
from fieldfare.toml import parse as parse_toml


def places_of(settings: PlacesSettings) -> Places:
    """Return the places of a node; ValueError or OSError if the graph cannot be read."""
    if not settings.graph:
        return Places(None, settings.here, settings.ahead)
    return Places(read_graph(Path(settings.graph)), settings.here, settings.ahead)


def read_graph(file: Path) -> Graph:
    """Return the movement graph in a file; a ValueError names the file and the wrong place."""
    text = file.read_text("utf-8")
    try:
        tree = msgspec.json.decode(text) if file.suffix == ".json" else parse_toml(text)
        ways = msgspec.convert(tree, dict[str, list[str]])
    except TomlError as error:
        raise ValueError(f"{file}: {error}") from None
    except msgspec.ValidationError as error:
        raise ValueError(f"{file}: each place has a list of the places a step away: {error}") from None
    except msgspec.DecodeError as error:
        raise ValueError(f"{file}: this is not JSON: {error}") from None
    graph: dict[str, set[str]] = {}
    for place, others in ways.items():
        for one, other in ((place, place), *((place, other) for other in others)):
            if not other:
                raise ValueError(f"{file}: {place!r} leads to a place without a name")
            graph.setdefault(one, set()).add(other)
            graph.setdefault(other, set()).add(one)
    if not graph:
        raise ValueError(f"{file}: there are no places")
    return {place: frozenset(others - {place}) for place, others in graph.items()}
