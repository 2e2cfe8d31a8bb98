"""Event matching on filters in a covering order, from general to special filters.

An event that fails a filter fails all filters below. So the search begins at the roots and goes down through matching
filters. A filter whose interfaces are all found needs no test, but filters below may belong to other interfaces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol, TypeVar

from fieldfare.events.event import Event, fields_of
from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Tests

Interface = TypeVar("Interface", bound=Hashable)


class Vertex(Protocol):
    """A filter in a tree or a graph of filters."""

    @property
    def filter(self) -> Filter:
        """The filter of the vertex."""

    @property
    def children(self: V) -> Mapping[Filter, V]:
        """The vertices right below, by filter."""


V = TypeVar("V", bound=Vertex)


def interested(
    roots: Iterable[V],
    event: Mapping[str, object],
    tests: Tests,
    *,
    interfaces: Callable[[Filter], AbstractSet[Interface]],
    everyone: int,
    carried: Callable[[V], AbstractSet[Interface]],
    all_found: Callable[[V, AbstractSet[Interface]], bool] | None = None,
    budget: int | None = None,
) -> set[Interface]:
    """Return the interfaces with a filter that the event matches.

    Args:
        roots: the vertices at the top.
        event: the event, flattened once if need be.
        tests: counts the comparisons.
        interfaces: the interfaces of a filter.
        everyone: the number of interfaces; when all are found, the search ends.
        carried: all interfaces of a vertex and of its subtree.
        all_found: tells whether all interfaces of a vertex and of its subtree are found, if cheap to know.
        budget: the number of tests; a filter beyond the budget counts as matching, with its whole subtree.
    """
    if not isinstance(event, Event) and fields_of(event) is not event:
        event = Event(event)  # made flat once, not for each filter
    found: set[Interface] = set()
    met: set[Filter] = set()
    queue = deque([roots])
    while queue and len(found) < everyone:
        for vertex in queue.popleft():
            filter = vertex.filter
            if filter in met or (all_found is not None and all_found(vertex, found)):
                continue
            met.add(filter)
            if not interfaces(filter) <= found:
                if budget is not None and budget <= 0:
                    found |= carried(vertex)
                    continue
                if budget is not None:
                    budget -= 1
                if not tests.matches(filter, event):
                    continue
                found |= interfaces(filter)
            queue.append(vertex.children.values())
    return found


def reachable(start: Iterable[V], step: Callable[[V], Iterable[V]]) -> dict[Filter, V]:
    """Return the vertices that are reachable from the start, the start included."""
    found: dict[Filter, V] = {}
    todo = list(start)
    while todo:
        vertex = todo.pop()
        if vertex.filter not in found:
            found[vertex.filter] = vertex
            todo.extend(step(vertex))
    return found
