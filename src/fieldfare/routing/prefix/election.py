"""`Election`: the role of the optimizer, which any permitted broker can take, and lose.

A broker without a heartbeat for some time begins a new term: its own heartbeat, with an empty list of reports, asks for
reports; then the broker waits, and goes on from the tree that every broker has. No other state is needed, so a standby
costs nothing. A leader that hears of a later term steps down. Two leaders, each in a separated part of the network,
lose no event: tags are read only by trees of their own term.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.routing.prefix import updates
from fieldfare.routing.prefix.follower import Follower
from fieldfare.routing.prefix.labels import ALPHABET, Order, by_popularity, by_selectivity
from fieldfare.routing.prefix.messages import (
    AnyTreeMessage,
    Heartbeat,
    InterestReport,
    TreeNews,
    TreeRequest,
    WholeTree,
)
from fieldfare.routing.prefix.optimizer import Optimizer
from fieldfare.routing.prefix.options import SILENT, PrefixOptions
from fieldfare.routing.prefix.tree import START, Term, Tree


@dataclass(slots=True)
class _Reported:
    """The reported filters of a broker."""

    life: int
    number: int
    seen: float
    filters: dict[Filter, None] = field(default_factory=dict)


class Election:
    """The election of the optimizer of a part, at a single broker."""

    def __init__(self, follower: Follower, name: str, life: int, options: PrefixOptions) -> None:
        self._follower = follower
        self._name, self._life = name, life
        self._by = ""
        self._options = options
        self._wait = options.wait(name, follower.part)
        self._since: float | None = None
        """time of the last sign of a leader, or of the start"""
        self.term = Term()
        """the latest known term"""
        self.leading = False
        self.optimizer: Optimizer | None = None
        """the optimizer, if this broker leads and has waited for reports"""
        self._reports: dict[str, _Reported] = {}
        self._next = 0.0
        """time of the next heartbeat"""
        self._laid_out = 0
        """number of filters at the last choice of the order of attributes"""

    @property
    def wakes(self) -> float | None:
        """The time at which `tick` must be called; None for a broker that may not lead."""
        if self.leading:
            due = None if self.optimizer is None else self.optimizer.due_at
            return self._next if due is None else min(self._next, due)
        if self._wait is None:
            return None
        if self._since is None:
            return 0.0  # at once
        patience = self._options.beat if self.term == Term() else self._options.patience
        return self._since + patience * (1 + self._wait)

    def tick(self, now: float, events: Sequence[Mapping[str, object]]) -> list[AnyTreeMessage]:
        """Take over from a silent leader, or do the work of the leader. `events` is a sample of recent events."""
        if self.wakes is None or now < self.wakes:
            return []
        if self.leading and now < self._next:
            return self._published(now)
        self._next = now + self._options.beat
        if self._since is None:
            self._since = now
            # A life may repeat, for a node restored from a copy; then the time keeps its terms apart.
            self._by = f"{self._name}/{crc32(f'{self._life} {now}'.encode()):08x}"
            return []
        if not self.leading:
            self._begin(now)
            return [self._heartbeat()]
        self._forget(now)
        messages: list[AnyTreeMessage] = []
        if self.optimizer is None:
            messages = self._take_over(now, events)
        elif self._should_lay_out() and (order := self._order(events)) != self.optimizer.tree.order:
            messages = self._lay_out(order, now)
        return [*messages, *self._published(now), self._heartbeat()]

    # A term

    def _begin(self, now: float) -> None:
        self.term = Term(self.term.round + 1, self._by)
        self.leading, self.optimizer, self._since = True, None, now
        self._reports = {}

    def _take_over(self, now: float, events: Sequence[Mapping[str, object]]) -> list[AnyTreeMessage]:
        """Go on from the tree of this broker, if the tree is usable."""
        tree = self._follower.placements.tree
        if tree.version == START or tree.version.term.round < 0:
            return self._lay_out(self._order(events), now)
        self._laid_out = self._count
        self.optimizer = self._optimizer(updates.apply(Tree(), updates.whole(tree)), now)
        return []

    def _optimizer(self, tree: Tree, now: float) -> Optimizer:
        return Optimizer(
            tree,
            self._boxes(filter for known in self._reports.values() for filter in known.filters),
            term=self.term,
            threshold=self._options.threshold,
            patience=self._options.refresh,
            now=now,
        )

    def _boxes(self, filters: Iterable[Filter]) -> list[Branch]:
        return [box for filter in filters for box in self._follower.boxes(filter)]

    def observe_term(self, term: Term, now: float) -> None:
        """Note a sign of a leader; a later term ends the own leadership."""
        if term >= self.term:
            if term != self.term:
                self.leading, self.optimizer = False, None
                self._reports = {}
            self.term = term
            self._since = now

    def _forget(self, now: float) -> None:
        """Forget the filters of brokers without a recent report."""
        late = now - SILENT * self._options.beat
        for broker in [broker for broker, known in self._reports.items() if known.seen < late]:
            self._change((), self._reports.pop(broker).filters)

    # Layout

    @property
    def _count(self) -> int:
        return sum(len(known.filters) for known in self._reports.values())

    def _should_lay_out(self) -> bool:
        """Tell whether the number of filters has doubled, so that another order of attributes may be better.

        The rule keeps new layouts rare.
        """
        return self._options.layout != "alphabet" and self._count >= max(100, 2 * self._laid_out)

    def _order(self, events: Sequence[Mapping[str, object]]) -> Order:
        self._laid_out = self._count
        boxes = self._boxes(filter for known in self._reports.values() for filter in known.filters)
        match self._options.layout:
            case "alphabet":
                return ALPHABET
            case "selectivity" if events:
                return by_selectivity(boxes, events)
        return by_popularity(boxes)

    def _lay_out(self, order: Order, now: float) -> list[AnyTreeMessage]:
        """Build a tree from scratch. After a publication the new tree begins another term: versions only grow."""
        if self.optimizer is not None:
            self.term = Term(self.term.round + 1, self._by)
        self.optimizer = self._optimizer(Tree(order=order), now)
        return [TreeNews(self._follower.part, self.optimizer.whole(now)[1])]

    # Words

    def _heartbeat(self) -> Heartbeat:
        version = self._follower.placements.tree.version if self.optimizer is None else self.optimizer.version
        heard = {broker: (known.life, known.number) for broker, known in self._reports.items()}
        return Heartbeat(self._follower.part, self.term, version, heard)

    def _published(self, now: float) -> list[AnyTreeMessage]:
        if self.optimizer is None or not self.optimizer.due(now):
            return []
        update = self.optimizer.publish(now)
        return [] if update is None else [TreeNews(self._follower.part, update)]

    def receive_report(self, report: InterestReport, now: float) -> list[AnyTreeMessage]:
        """Apply the changes of a broker's filters, if this broker leads."""
        if report.term > self.term:
            self.observe_term(report.term, now)
        if not self.leading:
            return []
        known = self._reports.get(report.broker)
        if known is not None and report.life < known.life:
            return []
        if report.after is None:
            before = {} if known is None else known.filters
            after = dict.fromkeys(report.added)
            self._reports[report.broker] = _Reported(report.life, report.number, now, after)
            self._change([one for one in after if one not in before], [one for one in before if one not in after])
        elif known is not None and (known.life, known.number) == (report.life, report.after):
            removed = [filter for filter in report.removed if known.filters.pop(filter, self) is None]
            added = [filter for filter in report.added if filter not in known.filters]
            known.filters.update(dict.fromkeys(added))
            known.number, known.seen = report.number, now
            self._change(added, removed)
        return self._published(now)

    def _change(self, added: Iterable[Filter], removed: Iterable[Filter]) -> None:
        if self.optimizer is not None:
            for box in self._boxes(added):
                self.optimizer.add(box)
            for box in self._boxes(removed):
                self.optimizer.remove(box)

    def receive_request(self, ask: TreeRequest, now: float) -> list[AnyTreeMessage]:
        """Answer a request for the whole tree, if this broker leads."""
        if self.optimizer is None:
            return []
        update, whole = self.optimizer.whole(now)
        news = [] if update is None else [TreeNews(self._follower.part, update)]
        return [*news, WholeTree(self._follower.part, ask.broker, whole)]
