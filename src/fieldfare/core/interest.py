"""The interest of all subscribers for publishers: `Roots` of a changing set of filters, and a `View` of the roots.

The interest is the set of all subscriptions without covered ones, merged where the union is exact, and cut to the
events that a publisher may publish.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index

MANY: Final = 50
"""Number of filters up to which pairs are tried for merging."""


class Roots:
    """The uncovered filters of a changing set."""

    def __init__(self) -> None:
        """Begin with the empty set."""
        self._all: set[Filter] = set()
        self._index: Index[Filter] = Index()
        self.found: set[Filter] = set()

    def update(self, wanted: set[Filter]) -> None:
        """Replace the set; the work is proportional to the difference."""
        gone, new = self._all - wanted, wanted - self._all
        suspects = set(new)
        for one in gone:
            self._index.remove(one)
        self._index.add_many((one, one) for one in new)
        for one in (gone & self.found) | (new if self.found else set()):
            suspects.update(self._index.covered(one))
        self._all = wanted
        self.found -= gone
        for one in suspects:
            if self._is_hidden(one):
                self.found.discard(one)
            else:
                self.found.add(one)

    def _is_hidden(self, one: Filter) -> bool:
        """Tell whether another filter covers the given filter; of two equivalent filters the second by text is."""
        others = (other for other in self._index.covering(one) if other != one)
        return any(not one.covers(other) or str(other) < str(one) for other in others)


class View:
    """The interest cut to the events of a permission to publish."""

    def __init__(self, publish: Filter | bool) -> None:
        """Begin with an empty interest, for a permission."""
        self._publish = publish
        self._cuts: dict[Filter, tuple[Filter, str] | None] = {}
        """Cut filters with their texts, by root; None where the permission and the root have no event in common."""
        self.texts: list[str] = []

    def show(self, roots: Iterable[Filter]) -> None:
        """Work out the texts for the present roots; cuts of known roots are reused."""
        before = self._cuts
        self._cuts = {one: before[one] if one in before else self._cut(one) for one in roots}
        shown = dict(cut for cut in self._cuts.values() if cut is not None)
        if len(shown) > MANY:
            self.texts = sorted(shown.values())
        else:
            self.texts = sorted(map(str, merged(shown)))

    def _cut(self, filter: Filter) -> tuple[Filter, str] | None:
        common = inside(filter, self._publish)
        return None if common is None else (common, str(common))


def inside(filter: Filter, permission: Filter | bool) -> Filter | None:
    """Return the intersection of a filter and a permission; None for an empty intersection.

    >>> from fieldfare.filters import parse
    >>> inside(parse("price < 5"), parse("kind = 'quote'")), inside(parse("kind = 'news'"), parse("kind = 'quote'"))
    (parse("kind = 'quote' AND price < 5"), None)
    """
    if isinstance(permission, bool):
        return filter if permission else None
    if permission.covers(filter):
        return filter
    try:
        common = permission & filter
    except FilterTooComplex:  # the permission itself reveals nothing that its owner does not know
        return permission if permission.overlaps(filter) else None
    return None if common.is_empty else common


def merged(filters: Iterable[Filter]) -> list[Filter]:
    """Merge filters where the union is exact and no more complex; the result matches the same events.

    >>> from fieldfare.filters import parse
    >>> merged([parse("x = 1"), parse("x = 2"), parse("x > 5")])
    [parse('x IN (1, 2) OR x > 5')]
    """
    done: list[Filter] = []
    for filter in sorted(filters, key=str):
        for place, other in enumerate(done):
            both = _either(other, filter)
            if both is not None:
                done[place] = both
                break
        else:
            done.append(filter)
    return done


def _either(one: Filter, other: Filter) -> Filter | None:
    """Return the union of two filters, unless the union is more complex than both."""
    if len(one.boxes) > 2 or len(other.boxes) > 2:
        return None
    try:
        both = one | other
    except FilterTooComplex:
        return None
    return both if len(both.boxes) <= max(len(one.boxes), len(other.boxes)) else None
