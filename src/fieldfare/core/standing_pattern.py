"""`StandingPattern`: a pattern in a node, with subscribers and counts.

A pattern of a client has the type of the composite events as key, a hash of the canonical text, so sessions with the
same pattern share a detector. A pattern of the settings has a name. Subscribers get the composite events by an
ordinary filter, `delivery_filter`, which moves with sessions from node to node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.patterns import Detection, Detector, Occurrence, Pattern, composite_type, parse_pattern
from fieldfare.patterns.bounds import Bounds
from fieldfare.patterns.decomposition import Recipe, recipe_of
from fieldfare.patterns.stamps import microseconds
from fieldfare.protocol.journal import Row

PREFIX: Final = "ce:"
"""beginning of the type of a composite event"""
PUBLISHER: Final = "~pattern:"
"""beginning of the name under which detections are published; the key of the pattern follows"""
AT_MOST: Final = 40
"""constituents at each end of a composite event that is too large for an event otherwise"""
NOWHERE: Final[Mapping[str, str]] = MappingProxyType({})
"""no part of a pattern is detected elsewhere"""
LATEST: Final = 20
"""detections that are remembered for people"""

_parsed = lru_cache(maxsize=1000)(parse_pattern)


class StandingPattern:
    """A pattern with everything but the open instances."""

    def __init__(
        self, key: str, text: str, by: str, born: int, *, named: bool = False, hosts: Mapping[str, str] = NOWHERE
    ) -> None:
        """Parse the text; `by` is the identity under which detections are numbered.

        Parts of the pattern are detected at the `hosts`, by type of the parts' composite events.
        """
        self.key, self.text, self.by, self.born, self.named = key, text, by, born, named
        self.hosts = dict(hosts)
        self.recipe: Recipe = recipe_of(_parsed(text), self.hosts)
        self.pattern: Pattern = self.recipe.runs
        self.type = composite_type(self.recipe.whole.text)
        self.count = 0
        """Number of the last detection."""
        self.logged = 0
        """Number of the last detection that the log has; known after a restart."""
        self.users: set[tuple[str, str]] = set()
        """Sessions and ids of the subscriptions to the composite events."""
        self.wanted: set[tuple[str, str]] = set()
        """Nodes that wait for the composite events as a part, each with the key of the whole there."""
        self.followed = False
        """Whether a session with a subscription has gone on at another node, where the pattern may be wanted."""
        self.idle = 0
        """How many maintenances in a row found nobody who wants the pattern."""
        self.own: Detector | None = None
        """The detector of a pattern that goes by the times of the events."""
        self.lead: int | None = None
        """Microseconds by which the times of events were ahead of the clock of this node, at most."""
        self.latest: deque[tuple[float, int]] = deque(maxlen=LATEST)
        """Time and position of the last detections since the start."""

    @property
    def publisher(self) -> str:
        """The name under which detections are published."""
        return PUBLISHER + self.key

    def rows(self) -> list[Row]:
        """Return the rows of the definition and of the counts."""
        value: list[Any] = [self.text, self.by, self.born, self.named, self.followed]
        if self.hosts or self.wanted:
            value += [self.hosts, sorted(map(list, self.wanted))]
        return [Row("pattern", (self.key,), value), self.count_row()]

    def count_row(self) -> Row:
        """Return the row that changes with each detection."""
        return Row("pattern-count", (self.key,), [self.count, self.lead])

    def own_detector(self, bounds: Bounds) -> Detector:
        """Return a detector for this pattern alone, which matches events by itself."""
        return Detector({self.key: self.pattern}, kernels="lazy", bounds=bounds)


@lru_cache(maxsize=1000)
def delivery_filter(type: str, key: str, node: str) -> Filter:
    """Return the filter of the composite events of a pattern at a node.

    >>> delivery_filter("ce:1", "fraud", "oslo")
    parse("detector = 'oslo' AND pattern = 'fraud' AND type = 'ce:1'")
    """
    quoted = [value.replace("'", "''") for value in (type, key, node)]
    return parse("type = '{}' AND pattern = '{}' AND detector = '{}'".format(*quoted))


def is_of_pattern(filter: Filter, type: str) -> bool:
    """Tell whether a filter is a `delivery_filter` of a type of composite events, for any detector.

    >>> is_of_pattern(delivery_filter("ce:1", "ce:1", "oslo"), "ce:1"), is_of_pattern(parse("type = 'ce:1'"), "ce:1")
    (True, False)
    """
    fields = {"type", "pattern", "detector"}
    return parse(f"type = '{type}'").covers(filter) and any(branch.keys() == fields for branch in filter.boxes)


def is_composite(event: Mapping[str, Any]) -> bool:
    """Tell whether an event has the type of a composite event."""
    type = event.get("type")
    return isinstance(type, str) and type.startswith(PREFIX)


def ancestry(event: Event) -> tuple[set[str], int]:
    """Return the patterns that have a part in a composite event, and the levels of composite events."""
    return _ancestry(event.tree)


def _ancestry(tree: Mapping[str, Any]) -> tuple[set[str], int]:
    own = tree.get("pattern")
    found, depth = ({own} if isinstance(own, str) else set()), 0
    for inner in _events(tree.get("constituents")):
        if is_composite(inner):
            more, levels = _ancestry(inner)
            found |= more
            depth = max(depth, levels)
    return found, depth + 1


def _events(constituents: Any) -> Iterator[Mapping[str, Any]]:
    for one in constituents if isinstance(constituents, (list, tuple)) else ():
        if not isinstance(one, Mapping):
            continue
        if isinstance(one.get("event"), Mapping):
            yield one["event"]
        yield from _events(one.get("constituents"))


def primitive_events(composite: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the primitive events in a composite event, at any depth."""
    tree = composite.tree if isinstance(composite, Event) else composite
    for inner in _events(tree.get("constituents")):
        if is_composite(inner):
            yield from primitive_events(inner)
        else:
            yield inner


def event_of(one: StandingPattern, detection: Detection, node: str) -> Event:
    """Return the composite event of a detection, without the middle if too large for an event."""
    made = one.recipe.event(detection.match, name=one.key, detector=node)
    try:
        return msgpack.decode(msgpack.encode(made))
    except EventError:
        pass
    parts: list[Any] = list(made.tree["constituents"])  # type: ignore[arg-type]
    for kept in (AT_MOST, 5, 0):
        few = [*parts[:kept], *parts[-kept:]] if kept else []
        shorter = {**made.tree, "constituents": few, "omitted": len(parts) - len(few)}
        try:
            return msgpack.decode(msgpack.encode(Event(shorter)))
        except EventError:
            continue
    return Event({name: value for name, value in made.tree.items() if name not in ("constituents", "expr")})


def stamped(event: Event, time: int) -> Occurrence:
    """Return an event with its time in microseconds; a composite event has its interval, which does not end later.

    The clock of the node that detected it may be ahead; what comes here afterwards must be able to follow it.
    """
    low, high = event.get("ts_lo"), event.get("ts_hi")
    if is_composite(event) and isinstance(low, datetime) and isinstance(high, datetime) and low <= high:
        end = min(microseconds(high), time)
        return Occurrence(min(microseconds(low), end), end, event)
    return Occurrence(time, time, event)
