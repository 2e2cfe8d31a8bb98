"""`DynamicFilter`: a filter with parameters, such as `price <= :budget` or `location IN myloc`.

A subscriber states the values, and changes them while the subscription goes on. `:name` is a single value, and a list
of values behind IN; `myloc` is the list of places that count as here. As long as a value is missing, nothing matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from fieldfare.events.values import Scalar
from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.filters.filter import NOTHING, Filter
from fieldfare.filters.languages.native import nodes
from fieldfare.filters.languages.native.nodes import Tree
from fieldfare.filters.languages.native.syntax import MYLOC, parse_tree
from fieldfare.filters.languages.native.translation import translate

__all__ = ["MYLOC", "DynamicFilter", "Values", "is_dynamic"]

Values: TypeAlias = Mapping[str, Scalar | Sequence[Scalar]]
"""present values of parameters, by name"""


class DynamicFilter:
    """A filter of the native language with parameters.

    >>> near = DynamicFilter("service = 'parking' AND location IN myloc")
    >>> near.fill({"myloc": ["a", "b"]})
    parse("location IN ('a', 'b') AND service = 'parking'")
    >>> near.fill({}).is_empty
    True
    """

    __slots__ = ("_tree", "parameters", "text")

    def __init__(self, text: str) -> None:
        """Read a text; FilterSyntaxError names the place of a mistake."""
        self.text = text
        self._tree = _tree(text)
        self.parameters = nodes.parameters(self._tree)

    def fill(self, values: Values) -> Filter:
        """Return the filter for present values.

        The filter is empty if a value is missing, or if the values leave nothing to match. A value of a wrong type is a
        FilterSyntaxError.
        """
        if not self.parameters <= values.keys():
            return NOTHING
        return translate(self.text, self._tree, values)


def is_dynamic(written: object) -> bool:
    """Tell whether a filter as written by a client has parameters; a text with a mistake has none.

    >>> is_dynamic("price <= :budget"), is_dynamic("name = ':budget'"), is_dynamic([{"exact": {"type": "a"}}])
    (True, False, False)
    """
    if not isinstance(written, str) or not (":" in written or MYLOC in written.lower()):
        return False
    try:
        return bool(nodes.parameters(_tree(written)))
    except FilterSyntaxError:
        return False


@lru_cache(maxsize=1000)
def _tree(text: str) -> Tree:
    return parse_tree(text)
