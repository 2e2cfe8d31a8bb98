"""`NamedFilter`: a filter that differs from other filters of the same meaning by name.

Simple routing keeps every subscription apart, and identity-based routing keeps filters of different meaning apart.
Simple routing is therefore identity-based routing of named filters: the same table serves both.
"""

from __future__ import annotations

from fieldfare.filters.filter import Filter


class NamedFilter(Filter):
    """A filter with a name, such as the id of a subscription.

    >>> from fieldfare.filters import parse
    >>> a, b = NamedFilter("a", parse("x = 1")), NamedFilter("b", parse("x = 1"))
    >>> a == b, a.covers(b), a == NamedFilter("a", parse("x = 1"))
    (False, True, True)
    """

    __slots__ = ("name",)

    def __init__(self, name: str, filter: Filter) -> None:
        """Take the name and a filter in normal form."""
        self.boxes = filter.boxes  # in normal form already
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedFilter) and self.name == other.name and super().__eq__(other)

    def __hash__(self) -> int:
        return hash((self.name, super().__hash__()))

    def __repr__(self) -> str:
        return f"NamedFilter({self.name!r}, {super().__repr__()})"


def unnamed(filter: Filter) -> Filter:
    """Return a filter without a name.

    >>> from fieldfare.filters import parse
    >>> unnamed(NamedFilter("a", parse("x = 1"))) == parse("x = 1")
    True
    """
    return Filter(filter.boxes) if isinstance(filter, NamedFilter) else filter
