"""Liveness in a finite form: an event is delivered by the next quiet moment.

When the network is quiet, every subscription has taken effect. An event published afterwards must be delivered by
the next quiet moment, if until then the subscription is kept, no link and no broker goes down or comes up, and a path
of links joins the two brokers. A client away at the time must get the event by the first quiet moment
after the return, at any broker.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Literal

from fieldfare.simulation.checker.active_filters import MatchedSubscriptions, advertised, any_match
from fieldfare.simulation.checker.components import Components
from fieldfare.simulation.checker.violations import EventId, Violation
from fieldfare.simulation.tally import Tally
from fieldfare.simulation.trace import (
    Arrived,
    Crashed,
    Delivered,
    Departed,
    Down,
    Forgot,
    Forwarded,
    Published,
    Quiet,
    Record,
    Restarted,
    Told,
    Trace,
    Up,
)


def liveness(
    trace: Trace,
    *,
    advertisements: bool = False,
    tally: Tally | None = None,
    durable: bool = False,
    clock_error: float = 0.0,
) -> list[Violation]:
    """Find events that subscriptions, and with advertisements publishers, made due and no quiet moment brought.

    With `durable` nodes no fault excuses a loss: at a quiet moment all links are up and all outboxes empty. Only the
    end of an event's time to live does, by clocks that may differ, and a disk that has lost something. A filter that
    replaces another one leaves no gap: an event is due if the filters before and after accept it.
    The tally counts due deliveries, and the deliveries judged here or by `local_liveness`.
    """
    tally = Tally() if tally is None else tally
    mobile = {record.client for record in trace if isinstance(record, Departed | Arrived)}
    found: list[Violation] = []
    owed: defaultdict[str, dict[EventId, set[str]]] = defaultdict(dict)
    """to clients: events, by the subscriptions for which they are due"""
    published = {(record.client, record.sequence): record for record in trace if isinstance(record, Published)}
    promised = advertised()
    subscriptions = MatchedSubscriptions(trace)
    network = Components()
    away: set[str] = set()
    disturbed = quiet = -1
    for record in trace:
        for client, id in subscriptions.follow(record):
            still = durable and (lambda one, c=client, i=id: subscriptions.accepts(c, i, published[one].event))
            _forgive(owed[client], id, still)
        for client, _ in promised.follow(record):
            if advertisements:
                for mine in owed.values():
                    for event_id in [event_id for event_id in mine if event_id[0] == client]:
                        del mine[event_id]
        match record:
            case Up() | Down() | Crashed() | Restarted() if durable:
                pass
            case Up() | Down() | Crashed() | Restarted() | Forgot():
                network.follow(record)
                disturbed = record.order
                owed.clear()
            case Quiet():
                quiet = record.order
                for client in [client for client in owed if client not in away]:
                    mine, latest = owed.pop(client), record.time + clock_error
                    lasting = {one: ids for one, ids in mine.items() if not _is_over(published[one], latest)}
                    found += _missing(client, lasting, quiet, tally)
            case Departed():
                away.add(record.client)
            case Arrived():
                away.discard(record.client)
            case Delivered():
                event_id = record.publisher, record.sequence
                if owed[record.client].pop(event_id, None) is not None:
                    tally.judges((record.client, event_id))
            case Published():
                event_id = record.client, record.sequence
                if advertisements and not any_match(promised.of[record.client], record.event):
                    continue
                wanted = list(subscriptions.match(record.event))
                tally.asks(len({client for client, _, _ in wanted}))
                nearby = {client for client, _, asked in wanted if asked.broker == record.broker} - mobile
                for client in nearby if not durable else ():
                    tally.judges_at_once((client, event_id))
                settled = {id: one for id, one in promised.of[record.client].items() if one.since < quiet}
                if quiet <= disturbed or (advertisements and not any_match(settled, record.event)):
                    continue
                for client, id, asked in wanted:
                    known = asked.is_known(quiet, record.event) if durable else asked.since < quiet
                    if known and (durable or network.joined(asked.broker, record.broker)):
                        owed[client].setdefault(event_id, set()).add(id)
    return found


def _missing(client: str, owed: dict[EventId, set[str]], order: int, tally: Tally) -> list[Violation]:
    """Return a violation for each event still due at a quiet moment."""
    for event_id in owed:
        tally.judges((client, event_id))
    problems = (f"to {client}: {event_id} is missing, due for {sorted(ids)}" for event_id, ids in owed.items())
    return [Violation("liveness", order, problem) for problem in problems]


def _is_over(publication: Published, time: float) -> bool:
    """Tell whether the time to live of an event has ended."""
    return 0 < publication.ttl <= time - publication.time


def _forgive(owed: dict[EventId, set[str]], id: str, still: Callable[[EventId], bool] | Literal[False]) -> None:
    """Cancel deliveries due only for an ended or replaced subscription, except events `still` due for the new one."""
    for event_id, ids in list(owed.items()):
        if id in ids and not (still and still(event_id)):
            ids.discard(id)
        if not ids:
            del owed[event_id]


def local_liveness(trace: Trace, *, advertisements: bool = False) -> list[Violation]:
    """Find clients of the publisher's own broker whom the step of the publication brought no delivery.

    Clients that move are exempt: a new broker waits for events on their way from the old broker.
    """
    found: list[Violation] = []
    mobile = {record.client for record in trace if isinstance(record, Departed | Arrived)}
    promised = advertised()
    subscriptions = MatchedSubscriptions(trace)
    for place, record in enumerate(trace):
        subscriptions.follow(record)
        promised.follow(record)
        if isinstance(record, Published):
            if advertisements and not any_match(promised.of[record.client], record.event):
                continue
            given = {other.client for other in _step(trace, place) if isinstance(other, Delivered)}
            wanted = subscriptions.match(record.event)
            missed = {client for client, _, asked in wanted if asked.broker == record.broker} - given - mobile
            for client in sorted(missed):
                problem = f"to {client}: {(record.client, record.sequence)} is missing, from the same broker"
                found.append(Violation("local liveness", record.order, problem))
    return found


def _step(trace: Trace, place: int) -> Iterator[Record]:
    """Return the records of the publication's step: the broker's deliveries, forwards and filter updates."""
    first = trace[place]
    assert isinstance(first, Published)
    for number in range(place + 1, len(trace)):
        record = trace[number]
        if not isinstance(record, Delivered | Forwarded | Told) or record.broker != first.broker:
            return
        if not isinstance(record, Told) and (record.publisher, record.sequence) != (first.client, first.sequence):
            return
        yield record
