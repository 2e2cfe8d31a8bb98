"""`PatternAtoms`: the filters of all patterns of a node, each once, and the patterns that an event concerns.

Each filter is a subscription of an internal client of the broker, so that the broker's one index matches an event for
patterns as for sessions, and neighbours send the events for patterns. The id of the subscription is a hash of the
filter: journal entries name the id, with the same meaning after a restart.

A composite event goes only to filters for composite events, and to no pattern with a part in the event. So no pattern
feeds on its own detections, however patterns stand over patterns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple

from fieldfare.core.base import Base
from fieldfare.core.sessions import SessionTable
from fieldfare.core.standing_pattern import StandingPattern, ancestry, is_composite
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.patterns.detector import Names
from fieldfare.protocol import messages as m
from fieldfare.protocol.messages import Send

PATTERNS: Final = "~patterns"
"""name of the broker's client that has the filters of patterns"""
COMPOSITE: Final = parse("type STARTS WITH 'ce:' OR EXISTS pattern")
"""a filter inside of this one asks for composite events"""


class Atom(NamedTuple):
    """A filter of patterns, with its names."""

    filter: Filter
    composites: bool
    """Whether the filter asks for composite events, which no other filter sees."""
    names: dict[str, frozenset[str | int]]
    """By pattern."""


class PatternAtoms:
    """The filters of patterns at the broker."""

    def __init__(self, base: Base, sessions: SessionTable, known: Mapping[str, StandingPattern], *, depth: int) -> None:
        """Begin without filters, with the `known` patterns of the node; composite events nest up to a depth."""
        self._base = base
        self._sessions = sessions
        self._known = known
        self._depth = depth
        self._atoms: dict[str, Atom] = {}
        self._nested = 0
        """Number of filters that ask for composite events."""

    def add(self, one: StandingPattern, now: float) -> list[Send]:
        """Subscribe to the filters of a pattern; return the messages to neighbours."""
        base, sends = self._base, list[Send]()
        for label in one.pattern.names:
            filter = one.pattern.filters[label]
            id = atom_id(filter)
            if id not in self._atoms:
                self._atoms[id] = Atom(filter, asks_for_composites(filter), {})
                self._nested += self._atoms[id].composites
                sends += base.broker.receive(m.Subscribe(id, filter), PATTERNS, now)
            names = self._atoms[id].names
            names[one.key] = names.get(one.key, frozenset()) | {label}
        self._sessions.changes += 1
        return sends

    def remove(self, one: StandingPattern, now: float) -> None:
        """Unsubscribe from the filters of no other pattern."""
        base = self._base
        for id in {atom_id(one.pattern.filters[label]) for label in one.pattern.names}:
            del self._atoms[id].names[one.key]
            if not self._atoms[id].names:
                self._nested -= self._atoms.pop(id).composites
                base.links.send_all(base.broker.receive(m.Unsubscribe(id), PATTERNS, now))
        self._sessions.changes += 1

    def __len__(self) -> int:
        return len(self._atoms)

    def names(self, position: int, event: Event, ids: Sequence[str]) -> Names:
        """Return the patterns that an event concerns: older than the event, and without a part in the event."""
        composite = is_composite(event)
        parts, depth = ancestry(event) if composite else (set(), 0)
        found: dict[str, frozenset[str | int]] = {}
        for id in ids:
            atom = self._atoms.get(id)
            if atom is None or (composite and (not atom.composites or depth >= self._depth)):
                continue
            for key, labels in atom.names.items():
                if key not in parts and self._known[key].born < position:
                    found[key] = found.get(key, frozenset()) | labels
        return list(found.items())

    def ids_of(self, composite: Event) -> Sequence[str]:
        """Return the filters that a detection of this node matches; without such filters there is no search."""
        return self._base.broker.clients.match(composite).get(PATTERNS, ()) if self._nested else ()


def asks_for_composites(filter: Filter) -> bool:
    """Tell whether a filter is about composite events, by type or pattern.

    >>> asks_for_composites(parse("pattern = 'fraud' AND tries > 3")), asks_for_composites(parse("tries > 3"))
    (True, False)
    """
    return COMPOSITE.covers(filter)


def atom_id(filter: Filter) -> str:
    """Return an id for a filter, the same after a restart."""
    return blake2b(str(filter).encode(), digest_size=9).hexdigest()
