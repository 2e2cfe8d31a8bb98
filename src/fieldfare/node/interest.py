"""`Interests`: the filters of all clients and neighbours, for publishers who skip events without a receiver.

The interest is the set of all subscriptions without covered ones, merged where the union is exact. Watching needs a
special permission, and a publisher hears only of the events within its permission to publish.

Publishers hear of a change a moment later, in a single frame for many changes. A thread works out the difference
beside the node's work, and the pause before the next time grows with the cost. So a subscription costs
the same whether a publisher watches or not.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from fieldfare.core.step import Step
from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.node.node import Node
from fieldfare.node.security import Permission

MOMENT: Final = 0.05
"""Seconds to wait for more changes."""
SHARE: Final = 20
"""Length of a pause in multiples of the work before it, so that the work takes a twentieth of the time."""
LONGEST: Final = 1.0
"""Longest pause in seconds, and so the longest delay of a change."""
MANY: Final = 50
"""Number of filters up to which pairs are tried for merging."""

logger = logging.getLogger("fieldfare.node")


@dataclass(slots=True)
class _Watcher:
    call: Callable[[list[str]], None]
    publish: Permission
    last: list[str] | None = None
    """Texts of the last call; None before the first."""


class Interests:
    """The publishers of a node with a watch on the interest."""

    def __init__(self, node: Node) -> None:
        """Begin without watching publishers, for a node."""
        self._node = node
        self._watchers: dict[str, _Watcher] = {}
        self._roots = Roots()
        self._views: dict[Permission, View] = {}
        self._version = -1
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        node.watchers.add(self._check)

    def watch(self, name: str, call: Callable[[list[str]], None], publish: Permission = True) -> None:
        """Call a function with the interest in a publisher's permitted events, now and after each change."""
        self._watchers[name] = _Watcher(call, publish)
        self._version = -1
        self._hurry.set()
        self._check()

    def forget(self, name: str) -> None:
        """End the watch of a session."""
        self._watchers.pop(name, None)

    def _check(self, _: Step | None = None) -> None:
        if self._watchers and self._task is None and self._version != self._node.core.changes:
            self._task = self._node.spawn(self._follow())
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        if task.exception() is not None:
            logger.error("the interest could not be worked out", exc_info=task.exception())
        else:
            self._check()  # for a change since the task's last look

    async def _follow(self) -> None:
        loop, pause = asyncio.get_running_loop(), MOMENT
        while self._watchers and self._version != self._node.core.changes:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
            self._hurry.clear()
            self._version = self._node.core.changes
            began = loop.time()
            wanted = self._node.core.interest()
            await asyncio.to_thread(self._work_out, wanted, {one.publish for one in self._watchers.values()})
            for watcher in list(self._watchers.values()):
                view = self._views.get(watcher.publish)  # None: the watcher came just now, and its turn is next
                if view is not None and view.texts != watcher.last:
                    watcher.last = view.texts
                    watcher.call(view.texts)
            pause = min(max(MOMENT, SHARE * (loop.time() - began)), LONGEST)

    def _work_out(self, wanted: set[Filter], permissions: set[Permission]) -> None:
        self._roots.update(wanted)
        views = {one: self._views.get(one) or View(one) for one in permissions}
        for view in views.values():
            view.show(self._roots.found)
        self._views = views


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

    def __init__(self, publish: Permission) -> None:
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


def inside(filter: Filter, permission: Permission) -> Filter | None:
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
