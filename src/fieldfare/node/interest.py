"""`Interests`: what anybody wants here, for publishers who would rather not send what nobody does.

All subscriptions of clients and neighbours, without those that others cover, and merged where that is exact. To ask is
a permission of its own, and whoever asks hears only of what they may publish: the rest is nobody's business.

Those who asked are told again when it changes, a moment later: many changes make one. What has changed is worked out
beside the node's work, from what was known before; and the more that costs, the longer is the pause before the next
time. So a subscription costs the same whether somebody has asked or not.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.node.node import Node
from fieldfare.node.security import Permission
from fieldfare.node.state import Step

MOMENT: Final = 0.05
"""seconds to wait for more changes"""
SHARE: Final = 20
"""the pause after some work is so many times as long as that took: so little of the time it takes"""
LONGEST: Final = 1.0
"""seconds of a pause at most: nobody is told later than that"""
MANY: Final = 50
"""filters up to which pairs are tried for merging"""

logger = logging.getLogger("fieldfare.node")


@dataclass(slots=True)
class _Asker:
    """Somebody who wants to know."""

    call: Callable[[list[str]], None]
    publish: Permission
    told: list[str] | None = None


class Interests:
    """Who wants to know what is wanted."""

    def __init__(self, node: Node) -> None:
        """Nobody yet."""
        self._node = node
        self._askers: dict[str, _Asker] = {}
        self._roots = Roots()
        self._views: dict[Permission, View] = {}
        self._version = -1
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        node.watchers.add(self._watch)

    def tell(self, name: str, call: Callable[[list[str]], None], publish: Permission = True) -> None:
        """Tell somebody what is wanted of what they may publish, as soon as that is known, and whenever it changes."""
        self._askers[name] = _Asker(call, publish)
        self._version = -1
        self._hurry.set()
        self._watch()

    def forget(self, name: str) -> None:
        """Somebody does not want to know any more."""
        self._askers.pop(name, None)

    def _watch(self, _: Step | None = None) -> None:
        if self._askers and self._task is None and self._version != self._node.broker.changes:
            self._task = self._node.beside(self._keep_up())
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            logger.error("what is wanted could not be told", exc_info=task.exception())

    async def _keep_up(self) -> None:
        loop, pause = asyncio.get_running_loop(), MOMENT
        while self._askers and self._version != self._node.broker.changes:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._hurry.wait()
            self._hurry.clear()
            self._version = self._node.broker.changes
            began = loop.time()
            wanted = self._node.broker.wanted()
            await asyncio.to_thread(self._work_out, wanted, {one.publish for one in self._askers.values()})
            for asker in list(self._askers.values()):
                view = self._views.get(asker.publish)  # none: they came just now, and it is their turn next
                if view is not None and view.texts != asker.told:
                    asker.told = view.texts
                    asker.call(view.texts)
            pause = min(max(MOMENT, SHARE * (loop.time() - began)), LONGEST)

    def _work_out(self, wanted: set[Filter], permissions: set[Permission]) -> None:
        self._roots.become(wanted)
        views = {one: self._views.get(one) or View(one) for one in permissions}
        for view in views.values():
            view.show(self._roots.found)
        self._views = views


class Roots:
    """The filters of a set that no other one of it covers, kept up to date as the set changes."""

    def __init__(self) -> None:
        """Of the empty set."""
        self._all: set[Filter] = set()
        self._index: Index[Filter] = Index()
        self.found: set[Filter] = set()

    def become(self, wanted: set[Filter]) -> None:
        """The set is another one; the work is that of the difference."""
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
        """Does another one cover it? Of two that cover each other the first by its text stays."""
        others = (other for other in self._index.covering(one) if other != one)
        return any(not one.covers(other) or str(other) < str(one) for other in others)


class View:
    """What somebody who may publish some events is told: nothing of any others."""

    def __init__(self, publish: Permission) -> None:
        """Nothing is wanted."""
        self._publish = publish
        self._cuts: dict[Filter, tuple[Filter, str] | None] = {}
        """what was worked out before"""
        self.texts: list[str] = []

    def show(self, roots: Iterable[Filter]) -> None:
        """Such filters are wanted."""
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
    """What a filter and a permission have in common; None if that is nothing.

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
    except FilterTooComplex:  # then all that they may publish may be wanted, which tells them nothing
        return permission if permission.overlaps(filter) else None
    return None if common.is_empty else common


def merged(filters: Iterable[Filter]) -> list[Filter]:
    """As few filters as are easily found that match what any of the given ones match, and nothing else.

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
    """Both as one, if that is as simple as each of them."""
    if len(one.boxes) > 2 or len(other.boxes) > 2:
        return None
    try:
        both = one | other
    except FilterTooComplex:
        return None
    return both if len(both.boxes) <= max(len(one.boxes), len(other.boxes)) else None
