"""Rates: limits on the events an interface gets, and counts of the events that each root of a table has seen lately.

Time is cut into windows of equal length, and the caller passes the time. In each window a `Gate` lets a limited number
of events pass to an interface; further events are lost for the interface. A `Meter` counts the events of a window,
keeps the last few counts, and returns averages, from which load may be balanced.

Both are immutable values: a change returns a new value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Generic, TypeVar

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface
from fieldfare.tables.structures.forest import Forest

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Gate(Generic[Interface]):
    """A limit on the events of each interface in a window; an interface without a limit gets all events.

    >>> gate = Gate(1.0, {"ana": 1})
    >>> passed, gate = gate.admit({"ana", "ben"}, now=0.1)
    >>> sorted(passed), sorted(gate.admit({"ana", "ben"}, now=0.9)[0]), sorted(gate.admit({"ana"}, now=1.0)[0])
    (['ana', 'ben'], ['ben'], ['ana'])
    """

    window: float
    limits: Mapping[Interface, int]
    number: int = 0
    """number of the window to which the counts belong"""
    counts: Mapping[Interface, int] = field(default_factory=lambda: MappingProxyType({}))

    def at(self, now: float) -> Gate[Interface]:
        """Return the gate in the window of a time. The window never goes back, even if the clock does."""
        number = max(self.number, int(now // self.window))
        return self if number == self.number else replace(self, number=number, counts=MappingProxyType({}))

    def is_open(self, interface: Interface) -> bool:
        """Tell whether the interface may get another event in the present window."""
        return interface not in self.limits or self.counts.get(interface, 0) < self.limits[interface]

    def admit(self, interfaces: Iterable[Interface], now: float) -> tuple[set[Interface], Gate[Interface]]:
        """Return the interfaces that may get an event now, and the gate after they got the event."""
        gate = self.at(now)
        passed = {interface for interface in interfaces if gate.is_open(interface)}
        return passed, replace(gate, counts=_counted(gate.counts, passed & gate.limits.keys()))


def admitted(
    forest: Forest,
    interfaces: Callable[[Filter], AbstractSet[Interface]],
    event: Mapping[str, object],
    gate: Gate[Interface],
    *,
    skip: bool = False,
) -> set[Interface]:
    """Return the interfaces of a forest that an event matches and for which the gate is open.

    With `skip`, the search stops below a filter all of whose interfaces have reached their limits. The search is
    faster, but may withhold the event from interfaces below, which have had fewer events than the filter above.
    """
    found: set[Interface] = set()
    todo = [forest.top]
    while todo:
        for child in todo.pop().children.values():
            still_open = {interface for interface in interfaces(child.filter) if gate.is_open(interface)}
            if (still_open or not skip) and forest.tests.matches(child.filter, event):
                found |= still_open
                todo.append(child)
    return found


@dataclass(frozen=True)
class Meter(Generic[Key]):
    """Counts of events in the present window and in some earlier windows.

    >>> meter: Meter[str] = Meter(window=10.0, keep=2)
    >>> meter = meter.count(["a"], now=1.0).count(["a", "b"], now=2.0).count(["a"], now=11.0)
    >>> meter.counts["a"], meter.averages(now=11.0), meter.averages(now=25.0)
    (1, {'a': 2.0, 'b': 1.0}, {'a': 1.5, 'b': 0.5})
    """

    window: float
    keep: int = 8
    """number of earlier windows that are remembered"""
    number: int | None = None
    counts: Mapping[Key, int] = field(default_factory=lambda: MappingProxyType({}))
    history: tuple[Mapping[Key, int], ...] = ()
    """the counts of the earlier windows, oldest first"""

    def at(self, now: float) -> Meter[Key]:
        """Return the meter in the window of a time. Past windows become history, also those without events."""
        number = int(now // self.window)
        if self.number is None:
            return replace(self, number=number)
        ended = number - self.number
        if ended <= 0:
            return self
        empty: Mapping[Key, int] = MappingProxyType({})
        past = (*self.history, self.counts, *[empty] * min(ended - 1, self.keep))[-self.keep :]
        return replace(self, number=number, counts=empty, history=past)

    def count(self, keys: Iterable[Key], now: float) -> Meter[Key]:
        """Return the meter after an event for these keys."""
        meter = self.at(now)
        return replace(meter, counts=_counted(meter.counts, keys))

    def averages(self, now: float) -> dict[Key, float]:
        """Return the events in a window, averaged over the remembered windows without the present window."""
        history = self.at(now).history
        keys = dict.fromkeys(key for counts in history for key in counts)
        return {key: sum(counts.get(key, 0) for counts in history) / len(history) for key in keys}


def covers(rate: int | None, other: int | None) -> bool:
    """Tell whether a limit admits all events which another limit admits; None is no limit."""
    return rate is None or (other is not None and rate >= other)


def merged(rate: int | None, other: int | None) -> int | None:
    """Return the smallest limit that covers both limits."""
    return rate if covers(rate, other) else other


def _counted(counts: Mapping[Key, int], keys: Iterable[Key]) -> Mapping[Key, int]:
    return MappingProxyType({**counts, **{key: counts.get(key, 0) + 1 for key in keys}})
