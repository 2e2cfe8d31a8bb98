"""Checks of channels: all receivers see the events of a type in one order, by numbers, and without a gap.

The order of a publisher's events, and of causes and effects, holds inside a channel, and among the events without a
channel; such an event may overtake one that makes the detour over a home.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from fieldfare.events.event import Event
from fieldfare.simulation.checker.active_filters import ActiveFilter, subscribed
from fieldfare.simulation.checker.order_checks import causal, fifo, total
from fieldfare.simulation.checker.violations import EventId, Violation
from fieldfare.simulation.trace import Delivered, Published, Quiet, Record, Trace

TypeOf: TypeAlias = Callable[[Event], str]
"""returns the type of an event in a channel; empty for other events"""


def channel_order(trace: Trace, type_of: TypeOf) -> list[Violation]:
    """Run all checks of orders, for each channel and for the events without a channel."""
    types = {type_of(record.event) for record in trace if isinstance(record, Published)}
    found: list[Violation] = []
    for type in types:
        part = list(_part(trace, type, type_of))
        found += [*fifo(part), *causal(part)]
        if type:
            found += [*total(part), *numbers(part), *gaps(part)]
    return found


def _part(trace: Trace, type: str, type_of: TypeOf) -> Iterator[Record]:
    """Yield the records without the events of other types."""
    for record in trace:
        if not isinstance(record, Published | Delivered) or type_of(record.event) == type:
            yield record


def numbers(trace: Trace) -> list[Violation]:
    """Find events without a number or with two numbers, numbers of two events, and falling numbers."""
    found: list[Violation] = []
    number_of: dict[EventId, int] = {}
    event_of: dict[int, EventId] = {}
    last: defaultdict[str, int] = defaultdict(int)
    for record in trace:
        if not isinstance(record, Delivered):
            continue
        event_id, number = (record.publisher, record.sequence), record.channel_number
        problem = None
        if not number:
            problem = "has no number"
        elif number_of.setdefault(event_id, number) != number:
            problem = f"has the numbers {number_of[event_id]} and {number}"
        elif event_of.setdefault(number, event_id) != event_id:
            problem = f"has the number {number} of {event_of[number]}"
        elif number <= last[record.client]:
            problem = f"has the number {number}, and comes after {last[record.client]}"
        if problem is not None:
            found.append(Violation("channel", record.order, f"to {record.client}: {event_id} {problem}"))
        last[record.client] = max(last[record.client], number)
    return found


class _Gap(NamedTuple):
    """A missing event; right if the subscription ends by the next rest."""

    delivery: Delivered
    number: int
    id: str
    missing: ActiveFilter

    def violation(self) -> Violation:
        about = f"to {self.delivery.client}: {self.number} is left out, due for {self.id}"
        return Violation("channel", self.delivery.order, f"{about}, before {self.delivery.channel_number}")


def gaps(trace: Trace) -> list[Violation]:
    """Find missing numbers of a channel, due for a subscription in force everywhere."""
    found: list[Violation] = []
    subscriptions = subscribed()
    events = {record.channel_number: record for record in trace if isinstance(record, Delivered)}
    known = sorted(events)  # a home whose disk may be a copy skips a million numbers
    rest_before: dict[EventId, int] = {}
    last: defaultdict[str, int] = defaultdict(int)
    left_out: list[_Gap] = []
    quiet = -1
    for record in trace:
        subscriptions.follow(record)
        match record:
            case Quiet():
                of = subscriptions.of
                found += [one.violation() for one in left_out if of[one.delivery.client].get(one.id) == one.missing]
                quiet, left_out = record.order, []
            case Published(ttl=0):
                rest_before[record.client, record.sequence] = quiet
            case Delivered():
                before = bisect_right(known, last[record.client])
                for number in known[before : bisect_left(known, record.channel_number)]:
                    other = events[number]
                    since = rest_before.get((other.publisher, other.sequence), -1)
                    for id, one in subscriptions.of[record.client].items():
                        if one.since < since and one.filter.matches(other.event):
                            left_out.append(_Gap(record, number, id, one))
                last[record.client] = max(last[record.client], record.channel_number)
    return found
