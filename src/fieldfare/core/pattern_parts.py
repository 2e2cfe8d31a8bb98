"""`PatternParts`: parts of patterns with detectors at other nodes, and parts with detectors here for other nodes.

A pattern of the settings with a placement policy is measured first: until the next maintenance (a minute), every
reachable node counts the events published there for the filters of the pattern. Then `patterns.placement` says which
parts get a separate detector, at which node, and which detectors are there already, and only then the pattern begins.
So there is never a state to move: the place of a pattern is decided before the first event.

The node of a pattern subscribes to the composite events of the parts, and asks for the parts behind the subscription
on the same links. A part is a pattern like others at the detecting node: durable, shared by everybody with the same
wish, and with detections numbered in the log of the node. So the whole is exactly once because the parts are. A
part ends with the last wish for the part. The request is repeated at each maintenance, for a node with a lost disk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from fieldfare.core.base import Base
from fieldfare.core.domains import is_foreign
from fieldfare.core.pattern_users import PatternUsers
from fieldfare.core.standing_pattern import NOWHERE, StandingPattern
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.patterns import parse_pattern
from fieldfare.patterns.canonical import expression_type
from fieldfare.patterns.decomposition import cuts
from fieldfare.patterns.placement import POLICIES, Hosted, Registry, Statistics, place
from fieldfare.protocol import messages as m
from fieldfare.protocol import patterns as p

PATIENCE: Final = 3
"""Maintenances after which a pattern begins with the statistics that have come so far."""

logger = logging.getLogger("fieldfare.node")


class Host(Protocol):
    """The patterns of a node, as the parts need them."""

    known: dict[str, StandingPattern]
    users: PatternUsers

    def begin(self, one: StandingPattern, now: float) -> None:
        """Start the detector of a pattern at this node."""

    def remove(self, key: str, now: float) -> None:
        """Stop the detector of a pattern and forget the pattern."""

    def beginning(
        self, key: str, text: str, *, named: bool = False, hosts: Mapping[str, str] = NOWHERE
    ) -> StandingPattern:
        """Return a pattern, to begin at the end of the log."""


class Measured(NamedTuple):
    """A pattern of the settings before the beginning of detection."""

    text: str
    policy: str
    filters: tuple[Filter, ...]
    types: tuple[str, ...]
    asked: frozenset[str]
    answers: dict[str, p.PatternStatistics]
    maintenances: int = 0


class Meter(NamedTuple):
    """The counts of a node for another node's pattern."""

    filters: tuple[Filter, ...]
    types: tuple[str, ...]
    counts: list[int]
    since: float


class PatternParts:
    """The parts of patterns, detected by nodes for each other."""

    def __init__(self, base: Base, patterns: Host, check_bounds: Callable[[StandingPattern], None]) -> None:
        """Begin with the parts in stored rows only."""
        self._base, self._patterns, self._check = base, patterns, check_bounds
        self.measured: dict[str, Measured] = {}
        """By name: patterns that wait for statistics."""
        self._meters: dict[tuple[str, str], Meter] = {}
        """By node and key."""
        self.fed = 0
        """Events since the last maintenance, once for each pattern that looked at the event."""
        self._since, self._load = 0.0, 0.0

    # The node of a pattern

    def settle(self, texts: Mapping[str, str], policies: Mapping[str, str], now: float) -> None:
        """Let the patterns of the settings stand here, by policies in parts; a pattern with a new text begins anew."""
        known = self._patterns.known
        for key in [key for key, one in known.items() if one.named and texts.get(key) != one.text]:
            self._patterns.remove(key, now)
        wanted = {key: (text, policies.get(key, "")) for key, text in texts.items()}
        for key in [key for key, one in self.measured.items() if wanted.get(key) != (one.text, one.policy)]:
            del self.measured[key], self._meters[self._base.name, key]
        for key, (text, policy) in wanted.items():
            if key in known or key in self.measured:
                continue
            one = self._patterns.beginning(key, text, named=True)
            self._check(one)
            if policy:
                self._plan(key, text, policy, now)
            else:
                self._patterns.begin(one, now)

    def _plan(self, name: str, text: str, policy: str, now: float) -> None:
        """Measure the events of a pattern of the settings; the pattern begins when all nodes have answered."""
        if policy not in POLICIES or POLICIES[policy].copies > 1:
            raise ValueError(f"{policy!r} is no placement policy of a node")
        pattern = parse_pattern(text)
        filters = tuple(dict.fromkeys(pattern.filters[one] for one in pattern.names))
        types = (expression_type(pattern), *(cut.type for cut in cuts(pattern)))
        self.measured[name] = Measured(text, policy, filters, types, frozenset(), {})
        self._meters[self._base.name, name] = Meter(filters, types, [0] * len(filters), now)
        self._ask(name)

    def _ask(self, name: str) -> None:
        """Ask the reachable nodes not asked before; after a start, links come up at different times."""
        one, envelopes = self.measured[name], self._base.envelopes
        reached = {node for node in envelopes.reached() if self._base.versions.has(node, "MeasurePattern")}
        for node in sorted(reached - one.asked):
            envelopes.send(node, p.MeasurePattern(name, tuple(map(str, one.filters)), one.types))
        self.measured[name] = one._replace(asked=one.asked | reached)

    def _begin_measured(self, name: str, now: float) -> None:
        """Choose the nodes for a pattern, and begin the pattern."""
        one, here = self.measured.pop(name), self._base.name
        one.answers[here] = self._statistics(name, self._meters.pop((here, name)), now)
        known = _joined(here, one)
        hosts: dict[str, str] = {}
        registry = Registry()
        for node, answer in one.answers.items():
            for type in answer.hosted if node in known.distance else ():
                registry = registry.used(Hosted(type, node), node)
        (stand,) = place(parse_pattern(one.text), here, POLICIES[one.policy], registry, known)
        for part in stand.all():
            hosts.setdefault(part.recipe.type, part.node)
        if hosts[stand.recipe.type] == here and stand.new:  # the node of the pattern puts it together itself
            del hosts[stand.recipe.type]
        self._patterns.begin(self._patterns.beginning(name, one.text, named=True, hosts=hosts), now)

    def began(self, one: StandingPattern, now: float) -> None:
        """Ask for the parts of a pattern, behind the subscriptions to the composite events of the parts."""
        for cut in one.recipe.parts.values():
            node = one.hosts[cut.type]
            want = p.WantPattern(one.key, cut.pattern.text, {t: n for t, n in one.hosts.items() if t != cut.type})
            if node == self._base.name:
                self._host(want, node, now)
            else:
                self._base.envelopes.send(node, want)

    def ended(self, one: StandingPattern, now: float) -> None:
        """Release the parts of a pattern."""
        for cut in one.recipe.parts.values():
            drop, node = p.DropPattern(one.key, cut.type), one.hosts[cut.type]
            if node == self._base.name:
                self._drop(drop, node, now)
            else:
                self._base.envelopes.send(node, drop)

    # Messages

    def receive(self, envelope: m.Envelope, now: float) -> None:
        """Take in a message of another node; other domains have no say here."""
        message, node = p.decode(envelope.content), envelope.origin
        if is_foreign(node):
            logger.warning("%s asks for parts of patterns from another domain, in vain", node)
            return
        match message:
            case p.MeasurePattern(key, filters, types):
                meter = Meter(tuple(map(parse, filters)), types, [0] * len(filters), now)
                self._meters[node, key] = meter
            case p.PatternStatistics(key) if key in self.measured:
                self.measured[key].answers[node] = message
                self._begin_answered(now)
            case p.WantPattern():
                self._host(message, node, now)
            case p.DropPattern():
                self._drop(message, node, now)
            case p.PatternRefused(key, reason) if key in self._patterns.known:
                logger.error("%s cannot detect a part of %s, which is detected here from now on: %s", node, key, reason)
                one = self._patterns.known[key]
                self._patterns.remove(key, now)
                whole = self._patterns.beginning(key, one.text, named=one.named)
                whole.wanted = one.wanted
                self._patterns.begin(whole, now)
                self._patterns.users.restore()

    def _host(self, want: p.WantPattern, node: str, now: float) -> None:
        """Detect a part for another node, or for a pattern here."""
        pattern = parse_pattern(want.text)
        made = self._patterns.beginning("", pattern.text, hosts=want.hosts)
        made.key = made.type
        one = self._patterns.known.get(made.key)
        if one is None:
            try:
                self._check(made)
            except ValueError as error:
                self._base.envelopes.send(node, p.PatternRefused(want.key, str(error)))
                return
            one = made
            one.wanted.add((node, want.key))
            self._patterns.begin(one, now)
        elif (node, want.key) not in one.wanted:
            one.wanted.add((node, want.key))
            self._base.buffer.store(*one.rows())

    def _drop(self, drop: p.DropPattern, node: str, now: float) -> None:
        one = self._patterns.known.get(drop.type)
        if one is None or (node, drop.key) not in one.wanted:
            return
        one.wanted.discard((node, drop.key))
        if one.users or one.wanted or one.named:
            self._base.buffer.store(*one.rows())
        else:
            self._patterns.remove(one.key, now)

    # Statistics

    def meter(self, event: Event) -> None:
        """Count an event published here."""
        for one in self._meters.values():
            for number, filter in enumerate(one.filters):
                one.counts[number] += filter.matches(event)

    @property
    def metering(self) -> bool:
        """Tell whether published events are counted."""
        return bool(self._meters)

    def _statistics(self, key: str, meter: Meter, now: float) -> p.PatternStatistics:
        seconds = max(now - meter.since, 1.0)
        hosted = tuple(type for type in meter.types if type in self._patterns.known)
        return p.PatternStatistics(
            key, tuple(count / seconds for count in meter.counts), self._load, tuple(sorted(self._base.links)), hosted
        )

    def maintain(self, now: float) -> None:
        """Answer with the counts, begin the measured patterns, and repeat requests for parts."""
        self._load, self.fed = self.fed / max(now - self._since, 1.0), 0
        self._since = now
        for (node, key), meter in list(self._meters.items()):
            if node != self._base.name:
                self._base.envelopes.send(node, self._statistics(key, meter, now))
                del self._meters[node, key]
        for name, one in list(self.measured.items()):
            self.measured[name] = one._replace(maintenances=one.maintenances + 1)
            self._ask(name)
        self._begin_answered(now)
        for pattern in list(self._patterns.known.values()):
            if pattern.recipe.parts:
                self.began(pattern, now)

    def _begin_answered(self, now: float) -> None:
        for name, one in list(self.measured.items()):
            answered = one.maintenances and one.asked <= one.answers.keys()
            if answered or one.maintenances >= PATIENCE:
                self._begin_measured(name, now)


def _joined(here: str, one: Measured) -> Statistics:
    """Return the statistics of all nodes with an answer, with distances over the links between the nodes."""
    links = {node: set(answer.neighbours) & one.answers.keys() for node, answer in one.answers.items()}
    reached = [node for node in links if node == here or node in _distances(here, links)]
    rates = {
        filter: {node: answer.rates[place] for node, answer in one.answers.items() if node in reached}
        for place, filter in enumerate(one.filters)
    }
    load = {node: answer.load for node, answer in one.answers.items()}
    return Statistics({node: _distances(node, links) for node in reached}, rates, load=load)


def _distances(start: str, links: Mapping[str, Iterable[str]]) -> dict[str, float]:
    found, edge, far = {start: 0.0}, [start], 0.0
    while edge:
        far += 1.0
        edge = [node for one in edge for node in links.get(one, ()) if node not in found]
        found.update(dict.fromkeys(edge, far))
    return found
