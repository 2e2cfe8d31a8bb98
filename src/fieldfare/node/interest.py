"""`Interests`: the filters of all clients and neighbours, for publishers who skip events without a receiver.

Watching needs a special permission, and a publisher hears only of the events within its permission to publish;
`core.interest` works out the interest.

Publishers hear of a change a moment later, in a single frame for many changes. A thread works out the difference
beside the node's work, and the pause before the next time grows with the cost. So a subscription costs
the same whether a publisher watches or not.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fieldfare.core.interest import Roots, View
from fieldfare.core.step import Step
from fieldfare.filters.filter import Filter
from fieldfare.node.node import Node
from fieldfare.node.security import Permission

MOMENT: Final = 0.05
"""Seconds to wait for more changes."""
SHARE: Final = 20
"""Length of a pause in multiples of the work before it, so that the work takes a twentieth of the time."""
LONGEST: Final = 1.0
"""Longest pause in seconds, and so the longest delay of a change."""

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
