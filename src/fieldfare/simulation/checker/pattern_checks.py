"""The check of patterns: the detections of a node must follow from the log, each once and in order.

The oracle knows no batches, rows, restarts or shared detectors. The whole log of a node is read once, every event goes
to a detector for each pattern alone, and each detection is compared with the next detection in the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from fieldfare.core.standing_pattern import PUBLISHER
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.patterns import Detection, Detector, Occurrence, Pattern, occurrence, parse_pattern
from fieldfare.patterns.decomposition import recipe_of
from fieldfare.patterns.stamps import microseconds
from fieldfare.protocol.journal import JournalEntry, details_of, is_handed_over

MARGIN = 1000
"""microseconds before the last look at a time, in which a timer may not have struck"""

_END = 1 << 60
"""behind all positions"""
_parsed = lru_cache(maxsize=1000)(parse_pattern)


class Standing(NamedTuple):
    """A pattern that has stood in a node from a position of the log on."""

    key: str
    text: str
    born: int
    ended: int | None = None
    """Position of the log at the end of the pattern; None: it stands still."""
    hosts: Mapping[str, str] = {}
    """Nodes that detect parts, by type."""


def check_patterns(
    node: str, entries: Iterable[JournalEntry], patterns: Iterable[Standing], until: float | None = None
) -> list[str]:
    """Return what is wrong with the detections in the log of a node; the timers before `until` must have struck."""
    replay = _Replay(node, patterns)
    for entry in entries:
        replay.read(entry)
    return [f"{node}: {problem}" for problem in replay.finish(until)]


class _One:
    """A pattern in the replay: its detector, the detections of the log, and those that follow from the events."""

    def __init__(self, standing: Standing) -> None:
        self.standing = standing
        self.recipe = recipe_of(_parsed(standing.text), standing.hosts)
        self.pattern: Pattern = self.recipe.runs
        self.detector = Detector({standing.key: self.pattern}, kernels="lazy")
        self.lead: int | None = None
        self.logged: dict[int, Event] = {}
        self.expected: list[Event] = []

    @property
    def own_time(self) -> bool:
        return bool(self.pattern.disorder)

    def stood_at(self, position: int) -> bool:
        ended = self.standing.ended
        return self.standing.born < position and (ended is None or position <= ended)


class _Replay:
    def __init__(self, node: str, patterns: Iterable[Standing]) -> None:
        self._node = node
        self._ones = [_One(standing) for standing in patterns]
        self._stamp = 0
        self._problems: list[str] = []

    def read(self, entry: JournalEntry) -> None:
        """Give an event to all patterns, or note a detection of the log."""
        if is_handed_over(entry):
            return
        details, event, at = details_of(entry), msgpack.decode(entry.event), microseconds(entry.time)
        if entry.publisher.startswith(PUBLISHER) and details.source == self._node:
            for one in self._ones:
                if PUBLISHER + one.standing.key == entry.publisher and one.stood_at(entry.position):
                    if entry.sequence in one.logged:
                        self._problems.append(f"detection {entry.sequence} of {one.standing.key} is in the log twice")
                    one.logged[entry.sequence] = event
            self._advance(at, entry.position)
            return
        ones = [one for one in self._ones if self._sees(one, event, entry.position)]
        if not ones:
            return
        self._advance(at, entry.position)
        for one in (one for one in ones if one.own_time):
            own = occurrence(event, entry.time)
            one.lead = max(own.high - at, own.high - at if one.lead is None else one.lead)
            self._found(one, one.detector.step([own]), entry.position)
        shared = [one for one in ones if not one.own_time]
        if shared:
            self._stamp = max(at, self._stamp + 1)
            for one in shared:
                own = _occurrence(event, self._stamp)
                end = min(own.high, self._stamp)  # the clock of the node that detected it may be ahead
                own = own._replace(low=min(own.low, end), high=end)
                self._found(one, one.detector.step([own]), entry.position)

    def _sees(self, one: _One, event: Event, position: int) -> bool:
        if not one.stood_at(position):
            return False
        composite = str(event.get("type", "")).startswith("ce:")
        if composite and ("'ce:" not in one.pattern.text and "pattern =" not in one.standing.text):
            return False
        return any(filter.matches(event) for filter in one.pattern.filters.values())

    def _advance(self, at: int, position: int) -> None:
        """Let the timers before a time strike; after the last event of an ended pattern they may not have struck."""
        for one in self._ones:
            if not one.stood_at(position):
                continue
            if not one.own_time:
                self._found(one, one.detector.advance(at), position)
            elif one.lead is not None:
                self._found(one, one.detector.advance(at + one.lead), position)

    def _found(self, one: _One, found: list[Detection], position: int) -> None:
        for detection in found:
            event = one.recipe.event(detection.match, name=one.standing.key, detector=self._node)
            one.expected.append(event)
            for other in self._ones:
                if other is not one and not other.own_time and self._sees(other, event, position):
                    self._found(other, other.detector.step([_occurrence(event, self._stamp)]), position)

    def finish(self, until: float | None) -> list[str]:
        """Return the problems, after the timers before a time."""
        if until is not None:
            self._advance(microseconds(until) - MARGIN, _END)
        for one in self._ones:
            key = one.standing.key
            for number in range(1, max([len(one.expected), *one.logged]) + 1):
                wanted = one.expected[number - 1] if number <= len(one.expected) else None
                found = one.logged.get(number)
                if found is None:
                    assert wanted is not None
                    self._problems.append(f"detection {number} of {key} is missing: {_short(wanted)}")
                elif wanted is None:
                    if one.standing.ended is None:
                        self._problems.append(f"detection {number} of {key} has no reason: {_short(found)}")
                elif _content(found) != _content(wanted):
                    self._problems.append(f"detection {number} of {key} is {_short(found)}, not {_short(wanted)}")
        return self._problems


def _occurrence(event: Event, stamp: int) -> Occurrence:
    if not str(event.get("type", "")).startswith("ce:"):
        return Occurrence(stamp, stamp, event)
    low, high = event["ts_lo"], event["ts_hi"]
    assert isinstance(low, datetime)
    assert isinstance(high, datetime)
    return Occurrence(microseconds(low), microseconds(high), event)


def _content(event: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two detections must have in common; an event too large for a frame has no middle."""
    tree = event.tree if isinstance(event, Event) else event
    left_out = {"detector", "constituents"} if "omitted" in tree else {"detector"}
    return {name: _plain(value) for name, value in tree.items() if name not in left_out}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items() if name != "detector"}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def _short(event: Event) -> str:
    return f"{event['ts_lo']:%H:%M:%S.%f}..{event['ts_hi']:%H:%M:%S.%f} of {len(event.tree.get('constituents', ()))}"  # type: ignore[arg-type]
