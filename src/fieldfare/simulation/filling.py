"""Dynamic filters filled in by replacing text: a slow, obvious twin of `filters.dynamic`.

A simulated client keeps all stated values, and so knows at each moment which filters are in force.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from fieldfare.filters import NOTHING, FilterSyntaxError, parse
from fieldfare.filters.filter import Filter
from fieldfare.filters.literals import literal
from fieldfare.routing.places import Graph, Places, ploc

SQUARE: Final[Graph] = {"a": "bc", "b": "ad", "c": "ad", "d": "bc"}
"""the movement graph of the book's example"""
_MARK: Final = re.compile(r"\bmyloc\b|:(\w+)")


class Dynamic(NamedTuple):
    """A subscription with parameters, as requested by a client."""

    id: str
    text: str

    def filled(self, values: Mapping[str, Any], places: Places) -> Filter:
        """Return the filter in force."""

        def written(found: re.Match[str]) -> str:
            if found[1] is None:
                here = (values["myloc"],) if places.graph is None else ploc(places.graph, values["myloc"], places.here)
                return _listed(sorted(here))
            value = values[found[1]]
            return _listed(value) if isinstance(value, (list, tuple)) else literal(value)

        names = {found[1] or "myloc" for found in _MARK.finditer(self.text)}
        if any(values.get(name) is None for name in names):
            return NOTHING
        try:
            return parse(_MARK.sub(written, self.text))
        except FilterSyntaxError:  # nothing can match
            return NOTHING


def _listed(values: Any) -> str:
    # A list without values is no text of the language: a value that no event has stands for it.
    return f"({', '.join(map(literal, values)) or literal('none of all')})"
