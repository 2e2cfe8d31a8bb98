"""`PathMatcher`: many path filters, run as a single automaton.

The selectors form a tree of steps, so that selectors with a common beginning share nodes (the idea of YFilter). The
tree is run as a nondeterministic automaton: every element of an event has the set of nodes reached so far, made from
the set of the parent element by a single step. All objects at a path have the same set, however many objects a list
holds. A condition is tested when its node is reached, once for all ids with the same condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic

from fieldfare.events.event import fields_of
from fieldfare.filters.constraint import Mode
from fieldfare.filters.elements import objects_at
from fieldfare.filters.filter import EVERYTHING, Filter
from fieldfare.filters.paths import ANY, Selector, Step, places, selector
from fieldfare.matching.matcher import Id, as_filter


@dataclass(eq=False, slots=True)
class _Node(Generic[Id]):
    """A node of the tree: the end of a chain of steps."""

    steps: dict[str, _Node[Id]] = field(default_factory=dict)
    """nodes by the name of the next element; `ANY` for any name"""
    gap: _Node[Id] | None = None
    """a node reached together with this node, and never left: the next element may stand at any depth"""
    waits: bool = False
    wanted: dict[Filter, dict[Id, None]] = field(default_factory=dict)
    """conditions on the elements here, with their ids"""

    @property
    def is_bare(self) -> bool:
        return not (self.steps or self.gap or self.wanted)

    def then(self, step: Step) -> _Node[Id]:
        """Return the node behind a step, made if new."""
        origin = self
        if step.gap:
            origin = self.gap = self.gap or _Node(waits=True)
        return origin.steps.setdefault(step.name, _Node())

    def prune(self, step: Step) -> None:
        """Drop the node behind a step if nothing is left there."""
        origin = self.gap if step.gap else self
        assert origin is not None
        if origin.steps[step.name].is_bare:
            del origin.steps[step.name]
        if self.gap is not None and self.gap.is_bare:
            self.gap = None


class PathMatcher(Generic[Id]):
    """Path filters with ids; `match` returns the ids of the filters which an event matches.

    The result agrees with `path(selector, condition).matches(event, mode)` for every filter and event.

    >>> matcher = PathMatcher[str]()
    >>> matcher.add("fast", "//cpu", "clock >= 700")
    >>> matcher.add("any board", "/auction/item/board")
    >>> matcher.match({"auction": {"item": [{"cpu": {"clock": 800}}]}})
    ['fast']
    """

    def __init__(self) -> None:
        self._root = _Node[Id]()
        self._filters: dict[Id, tuple[Selector, Filter]] = {}

    def add(self, id: Id, where: Selector | str, condition: Filter | str = EVERYTHING) -> None:
        """Store a path filter. KeyError if the id is in use."""
        if id in self._filters:
            raise KeyError(id)
        chosen = selector(where) if isinstance(where, str) else where
        wanted = as_filter(condition)
        self._filters[id] = chosen, wanted
        self._way(chosen)[-1].wanted.setdefault(wanted, {})[id] = None

    def remove(self, id: Id) -> None:
        """Remove a path filter, and the nodes without other use. KeyError if no filter has the id."""
        chosen, wanted = self._filters.pop(id)
        way = self._way(chosen)
        ids = way[-1].wanted[wanted]
        del ids[id]
        if not ids:
            del way[-1].wanted[wanted]
        for node, step in zip(way[-2::-1], reversed(chosen.steps), strict=True):
            node.prune(step)

    def _way(self, chosen: Selector) -> list[_Node[Id]]:
        """Return the nodes from the root to the end of a selector."""
        way = [self._root]
        for step in chosen.steps:
            way.append(way[-1].then(step))
        return way

    def match(self, event: Mapping[str, object], mode: Mode = "overlaps") -> list[Id]:
        """Return the ids of all path filters that the event matches, each once, in no particular order."""
        fields = fields_of(event)
        found: dict[Id, None] = {}
        reached: dict[str, list[_Node[Id]]] = {}
        for path in places(fields):
            wanted = [item for node in self._reached(path, reached) for item in node.wanted.items()]
            elements = list(objects_at(fields, path)) if wanted else []
            for condition, ids in wanted:
                if not ids.keys() <= found.keys() and any(condition.matches_fields(each, mode) for each in elements):
                    found.update(ids)
        return list(found)

    def _reached(self, path: str, known: dict[str, list[_Node[Id]]]) -> list[_Node[Id]]:
        """Return the nodes that a path leads to: a step from the nodes of the parent path, each node once."""
        nodes = known.get(path)
        if nodes is None:
            above, dot, name = path.rpartition(".")
            nodes = known[path] = _stepped(self._reached(above, known) if dot else _with_gaps([self._root]), name)
        return nodes

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, id: object) -> bool:
        return id in self._filters


def _stepped(nodes: Iterable[_Node[Id]], name: str) -> list[_Node[Id]]:
    """Return the nodes that a step with a name leads to."""
    following: list[_Node[Id]] = []
    for node in nodes:
        if node.waits:
            following.append(node)
        following += [node.steps[key] for key in {name, ANY} if key in node.steps]
    return list(dict.fromkeys(_with_gaps(following)))


def _with_gaps(nodes: list[_Node[Id]]) -> list[_Node[Id]]:
    return nodes + [node.gap for node in nodes if node.gap is not None]
