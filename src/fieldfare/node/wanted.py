"""`Wishes`: what anybody wants here, for publishers who would rather not send what nobody does.

All subscriptions of clients and neighbours, without those that others cover, and merged where that is exact. Those who
asked are told again when it changes, a moment later: many changes make one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.node.kept import Step
from fieldfare.node.node import Node

MOMENT: Final = 0.05
"""seconds to wait for more changes"""
MANY: Final = 50
"""filters up to which pairs are tried for merging"""
_ABOUT: Final = frozenset({"subscriptions", "told", "session", "neighbour"})


class Wishes:
    """Who wants to know what is wanted."""

    def __init__(self, node: Node) -> None:
        """Nobody yet."""
        self._node = node
        self._curious: dict[str, Callable[[list[str]], None]] = {}
        self._known: list[str] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._version = -1
        node.watchers.add(self._watch)

    def tell(self, name: str, call: Callable[[list[str]], None]) -> None:
        """Tell somebody now and whenever it changes."""
        self._curious[name] = call
        call(self._now())

    def forget(self, name: str) -> None:
        """Somebody does not want to know any more."""
        self._curious.pop(name, None)

    def _watch(self, _: Step) -> None:
        if self._curious and self._timer is None and self._version != self._node.broker.changes:
            self._timer = asyncio.get_running_loop().call_later(MOMENT, self._tell_all)

    def _tell_all(self) -> None:
        self._timer = None
        before, now = self._known, self._now()
        if now != before:
            for call in list(self._curious.values()):
                call(now)

    def _now(self) -> list[str]:
        if self._version != self._node.broker.changes:
            version = self._node.broker.changes
            self._known = sorted(str(filter) for filter in merged(self._node.broker.wanted()))
            self._version = version
        return self._known or []


def merged(filters: set[Filter]) -> list[Filter]:
    """As few filters as are easily found that match what any of the given ones match, and nothing else.

    >>> from fieldfare.filters import parse
    >>> merged({parse("x = 1"), parse("x = 2"), parse("x > 5"), parse("x > 7")})
    [parse('x IN (1, 2) OR x > 5')]
    """
    index = Index((filter, filter) for filter in filters)
    roots = [one for one in filters if not any(other != one for other in index.covering(one))]
    roots.sort(key=str)
    if len(roots) > MANY:
        return roots
    done: list[Filter] = []
    for filter in roots:
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
