"""Checks of networks of durable nodes: a delivery may come long after the event, and nothing excuses a loss.

An event is matched between publication and delivery, so each subscription counts with some time in force between the
two. A client with an unsubscription on the way counts as subscribed until the answer. A filter replaced
under the same id may count until the next quiet moment, when the replacement has arrived everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from fieldfare.events.event import Event, fields_of
from fieldfare.filters.filter import Filter
from fieldfare.routing.strategies import Order
from fieldfare.simulation.checker.active_filters import advertised, any_match
from fieldfare.simulation.checker.channel_checks import TypeOf, channel_order
from fieldfare.simulation.checker.liveness_checks import liveness
from fieldfare.simulation.checker.order_checks import causal, fifo
from fieldfare.simulation.checker.shared_checks import first_deliveries
from fieldfare.simulation.checker.violations import EventId, Violation
from fieldfare.simulation.tally import Tally
from fieldfare.simulation.trace import Delivered, Forgot, Left, Published, Quiet, Subscribed, Trace, Unsubscribed

_FOREVER = 1 << 60


class _Publication(NamedTuple):
    order: int
    quiet: int
    """the last quiet moment before"""
    event: Event
    advertised: bool


class _Asked(NamedTuple):
    """A subscription with the places of begin and end in the trace."""

    id: str
    filter: Filter
    since: int
    until: int = _FOREVER


class _History:
    """All subscriptions of a client, past and present."""

    def __init__(self) -> None:
        self.present: dict[str, _Asked] = {}
        self.past: list[_Asked] = []
        self._replaced: list[_Asked] = []

    def subscribe(self, record: Subscribed) -> None:
        if record.id in self.present:
            self._replaced.append(self.present[record.id])
        self.present[record.id] = _Asked(record.id, record.filter, record.order)

    def end(self, id: str, order: int) -> None:
        if id in self.present:
            self.past.append(self.present.pop(id)._replace(until=order))

    def rest(self, order: int) -> None:
        self.past += [one._replace(until=order) for one in self._replaced]
        self._replaced = []

    def matching(self, publication: _Publication) -> set[str]:
        """Return the ids of all possibly matching subscriptions since the publication."""
        fields = fields_of(publication.event)
        known = (*self.present.values(), *self._replaced, *self.past)
        return {one.id for one in known if one.until > publication.order and one.filter.matches_fields(fields)}

    def due(self, publication: _Publication, named: tuple[str, ...]) -> list[_Asked]:
        """Return the unnamed matching subscriptions in force everywhere."""
        fields = fields_of(publication.event)
        others = [one for id, one in self.present.items() if id not in named and one.since < publication.quiet]
        return [one for one in others if one.filter.matches_fields(fields)]


class _Unnamed(NamedTuple):
    """A delivery without the name of a matching subscription; right if the subscription ends by the next rest."""

    delivery: Delivered
    history: _History
    missing: _Asked

    def violation(self) -> Violation:
        about = f"to {self.delivery.client}: {(self.delivery.publisher, self.delivery.sequence)}"
        return Violation("attribution", self.delivery.order, f"{about} does not name {self.missing.id}")


def check_durable(
    trace: Trace,
    *,
    advertisements: bool = False,
    order: Order = "causal",
    tally: Tally | None = None,
    clock_error: float = 0.0,
    type_of: TypeOf | None = None,
) -> list[Violation]:
    """Run all checks of durable nodes: nothing lost, nothing twice, nothing unasked, and the promised order.

    An event with a time to live may be missing from the end of that time on, and earlier by the error of the clocks.
    After a disk has lost something, the promise holds for the events published after the next quiet moment. With
    channels, `type_of` tells which events are in one; the promised order is that of channels then.
    """
    once, safe = first_deliveries(trace), _without_pardoned(trace)
    found = [
        *durable_safety(_without_pardoned(once), advertisements=advertisements),
        *liveness(once, advertisements=advertisements, tally=tally, durable=True, clock_error=clock_error),
    ]
    if type_of is not None:
        found += channel_order(safe, type_of)
    else:
        found += fifo(safe) if order in ("fifo", "causal") else []
        found += causal(safe) if order == "causal" else []
    return sorted(found, key=lambda violation: violation.order)


def _without_pardoned(trace: Trace) -> Trace:
    """Return a trace without the deliveries of events that a node may have forgotten: they may come again, and late."""
    last = max((record.order for record in trace if type(record) is Forgot), default=-1)
    if last < 0:
        return trace
    rest = next((record.order for record in trace if type(record) is Quiet and record.order > last), len(trace))
    old = {(one.client, one.sequence) for one in trace if type(one) is Published and one.order < rest}
    return [one for one in trace if type(one) is not Delivered or (one.publisher, one.sequence) not in old]


def durable_safety(trace: Trace, *, advertisements: bool = False) -> list[Violation]:
    """Find deliveries of unpublished or unwanted events, repeated deliveries, and wrong attributions."""
    found: list[Violation] = []
    histories: defaultdict[str, _History] = defaultdict(_History)
    promised = advertised()
    published: dict[EventId, _Publication] = {}
    delivered: set[tuple[str, EventId]] = set()
    unnamed: list[_Unnamed] = []
    quiet = -1
    for record in trace:
        promised.follow(record)
        match record:
            case Quiet(order=quiet):
                found += [one.violation() for one in unnamed if one.history.present.get(one.missing.id) == one.missing]
                unnamed = []
                for history in histories.values():
                    history.rest(quiet)
            case Subscribed():
                histories[record.client].subscribe(record)
            case Unsubscribed():
                histories[record.client].end(record.id, record.order)
            case Left():
                for id in list(histories[record.client].present):
                    histories[record.client].end(id, record.order)
            case Published():
                event_id = record.client, record.sequence
                may_publish = not advertisements or any_match(promised.of[record.client], record.event)
                if event_id in published:
                    found.append(Violation("safety", record.order, f"{event_id} is published twice"))
                published[event_id] = _Publication(record.order, quiet, record.event, may_publish)
            case Delivered():
                event_id, history = (record.publisher, record.sequence), histories[record.client]
                problem = _problem(record, published, history, delivered)
                if problem is not None:
                    found.append(Violation("safety", record.order, f"to {record.client}: {event_id} {problem}"))
                else:
                    missing = history.due(published[event_id], record.subscriptions)
                    unnamed += [_Unnamed(record, history, one) for one in missing]
    return found


def _problem(
    record: Delivered,
    published: dict[EventId, _Publication],
    history: _History,
    delivered: set[tuple[str, EventId]],
) -> str | None:
    event_id = record.publisher, record.sequence
    original = published.get(event_id)
    if original is None:
        return "was not published before"
    if original.event != record.event:
        return "is not as it was published"
    if (record.client, event_id) in delivered:
        return "had been delivered before"
    delivered.add((record.client, event_id))
    if not original.advertised:
        return "was not advertised"
    may = history.matching(original)
    if not record.subscriptions or not may.issuperset(record.subscriptions):
        return f"comes for {sorted(record.subscriptions)}, and only {sorted(may)} could match"
    return None
