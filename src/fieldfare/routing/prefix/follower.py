"""`Follower`: a broker with a copy of the tree.

A follower reports its clients' filters, and applies the optimizer's updates.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.routing.prefix.labels import ALPHABET
from fieldfare.routing.prefix.messages import AnyTreeMessage, Heartbeat, InterestReport, TreeRequest
from fieldfare.routing.prefix.optimizer import part
from fieldfare.routing.prefix.options import PrefixOptions
from fieldfare.routing.prefix.placements import Placements
from fieldfare.routing.prefix.tree import Term, Tree, TreeVersion
from fieldfare.routing.prefix.updates import TreeUpdate, UpdateGap
from fieldfare.routing.routes import LOCAL

PAUSE: Final = 0.1
"""seconds between two reports, at least"""


class Follower:
    """A follower of a single part of the filters."""

    def __init__(self, part: int, name: str, life: int, options: PrefixOptions) -> None:
        self.part = part
        self.placements = Placements(Tree())
        self._name = name
        self._life = life
        self._options = options
        self._wanted: dict[Filter, None] = {}
        """filters of the own clients that belong to this part"""
        self._changes: dict[Filter, bool] = {}
        """changes since the last report: True for added filters"""
        self._number = 0
        self._last = -PAUSE
        """time of the last report"""
        self._term = Term()
        """the latest known term"""
        self._heard: tuple[int, int] | None = None
        """the own entry in the optimizer's last heartbeat"""
        self._asked = float("-inf")
        self._versions: deque[tuple[float, TreeVersion]] = deque()

    def boxes(self, filter: Filter) -> list[Branch]:
        """Return the boxes of a filter that belong to this part."""
        parts = self._options.parts
        return [box for box in filter.boxes if parts == 1 or part(ALPHABET.path(box), parts) == self.part]

    def record(self, filter: Filter, interface: str, wanted: bool) -> None:
        """Record that an interface adds or removes a filter."""
        boxes = self.boxes(filter)
        for box in boxes:
            (self.placements.add if wanted else self.placements.remove)(box, interface)
        if boxes and interface == LOCAL:
            if wanted:
                self._wanted[filter] = None
            else:
                del self._wanted[filter]
            if self._changes.pop(filter, wanted) == wanted:  # otherwise the state is as reported
                self._changes[filter] = wanted

    # Reports

    @property
    def wakes(self) -> float | None:
        """The time of the next report; None if nothing has changed."""
        return self._last + PAUSE if self._changes else None

    def tick(self, now: float) -> list[AnyTreeMessage]:
        """Report the changes, if a report is due."""
        return [self._report(now, self._number)] if self.wakes is not None and now >= self.wakes else []

    def _report(self, now: float, after: int | None) -> InterestReport:
        changes = dict.fromkeys(self._wanted, True) if after is None else self._changes
        added = tuple(filter for filter, wanted in changes.items() if wanted)
        removed = tuple(filter for filter, wanted in changes.items() if not wanted)
        if changes or after is None:
            self._number += 1
        self._changes = {}
        self._last = now
        return InterestReport(self.part, self._name, self._life, self._term, self._number, after, added, removed)

    # What the optimizer says

    def receive_heartbeat(self, heartbeat: Heartbeat, now: float) -> list[AnyTreeMessage]:
        """Compare an optimizer's knowledge with the own, and report or ask for the missing part."""
        if heartbeat.term < self._term:
            return [self._report(now, self._number)]  # the sender must learn of the later term
        self._follow(heartbeat.term)
        heard, before = heartbeat.reports.get(self._name), self._heard
        self._heard = heard
        messages: list[AnyTreeMessage] = []
        if heard is None or (heard != (self._life, self._number) and heard == before):
            messages.append(self._report(now, None))  # the last report is not on its way but lost
        elif now - self._last >= 2 * self._options.beat:
            messages.append(self._report(now, self._number))
        if heartbeat.version > self.placements.tree.version:
            messages += self._ask(now)
        self._forget(now)
        return messages

    def receive_update(self, update: TreeUpdate, now: float) -> list[AnyTreeMessage]:
        """Apply an update of the tree; ask for the whole tree if the update does not follow the own version."""
        if update.version.term < self._term:
            return []
        self._follow(update.version.term)
        try:
            if self.placements.apply(update):
                self._versions.append((now, self.placements.tree.version))
        except UpdateGap:
            return self._ask(now)
        return []

    def _follow(self, term: Term) -> None:
        if term != self._term:
            self._term, self._heard = term, None

    def _ask(self, now: float) -> list[AnyTreeMessage]:
        if now - self._asked < self._options.beat:
            return []
        self._asked = now
        return [TreeRequest(self.part, self._name)]

    def _forget(self, now: float) -> None:
        """Forget versions that were replaced long ago; events with such tags are matched by content."""
        versions = self._versions
        if len(versions) > 1 and versions[1][0] < now - self._options.remember:
            while len(versions) > 1 and versions[1][0] < now - self._options.remember:
                versions.popleft()
            self.placements.forget(versions[0][1])
