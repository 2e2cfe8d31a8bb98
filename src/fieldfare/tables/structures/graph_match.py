"""Matching an event on filters that are ordered by covering, from the general to the special.

What does not match a filter matches nothing that it covers. So one begins with the roots and goes down where it
matches. Nor need one ask a filter whose interfaces are found already; but what is below it may come from others.
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
    """A filter in a tree or a graph."""

    @property
    def filter(self) -> Filter:
        """The filter."""

    @property
    def children(self: V) -> Mapping[Filter, V]:
        """What is right below."""


V = TypeVar("V", bound=Vertex)


def interested(
    roots: Iterable[V],
    event: Mapping[str, object],
    tests: Tests,
    *,
    interfaces: Callable[[Filter], AbstractSet[Interface]],
    everyone: int,
    carried: Callable[[V], AbstractSet[Interface]],
    settled: Callable[[V, AbstractSet[Interface]], bool] | None = None,
    budget: int | None = None,
) -> set[Interface]:
    """The interfaces that want an event.

    `everyone` is how many interfaces there are: when all are found, nothing is left to ask. `settled` tells whether
    those of a vertex and of all below are among the ones found, for structures that know that cheaply. With a `budget`
    of tests, all that could not be tested is taken to match: then `carried` gives all interfaces from a vertex down.
    """
    if not isinstance(event, Event) and fields_of(event) is not event:
        event = Event(event)  # made flat once, not for each filter
    found: set[Interface] = set()
    met: set[Filter] = set()
    queue = deque([roots])
    while queue and len(found) < everyone:
        for vertex in queue.popleft():
            filter = vertex.filter
            if filter in met or (settled is not None and settled(vertex, found)):
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
    """The vertices that one gets to, the start included."""
    found: dict[Filter, V] = {}
    todo = list(start)
    while todo:
        vertex = todo.pop()
        if vertex.filter not in found:
            found[vertex.filter] = vertex
            todo.extend(step(vertex))
    return found
