"""Checks of sessions with devices: each device gets what a session of its own would get.

A device that was there from the beginning is judged by all the checks of a session. A device that came late must get
whatever is published from then on and comes to a device of the beginning; nothing may come twice or out of order.
"""

from __future__ import annotations

from collections.abc import Callable

from fieldfare.simulation.checker.durable_checks import durable_safety
from fieldfare.simulation.checker.order_checks import fifo
from fieldfare.simulation.checker.violations import Violation
from fieldfare.simulation.trace import (
    Delivered,
    DeliveredToDevice,
    DeviceAdded,
    DeviceRemoved,
    Published,
    Record,
    Trace,
)


def check_devices(
    trace: Trace, check: Callable[[Trace], list[Violation]], *, advertisements: bool, in_order: bool
) -> list[Violation]:
    """Run the check of sessions for the devices of the beginning, and the checks of late devices for the others."""
    late = {record.member: record.order for record in trace if isinstance(record, DeviceAdded)}
    known = sorted({record.member for record in trace if isinstance(record, DeliveredToDevice)} - late.keys())
    found: list[Violation] = []
    for device in known:
        found += [_of(one, device) for one in check(as_seen_by(trace, device))]
    if not known:
        found += check(trace)
    for device, begin in late.items():
        mine = as_seen_by(trace, device)
        problems = [*durable_safety(mine, advertisements=advertisements), *(fifo(mine) if in_order else [])]
        problems += _missing(trace, device, begin, known)
        found += [_of(one, device) for one in problems]
    return found


def _of(violation: Violation, device: str) -> Violation:
    return violation._replace(problem=f"{violation.problem} (device {device})")


def as_seen_by(trace: Trace, device: str) -> list[Record]:
    """Return a trace with the deliveries to a single device, as those to its session."""
    found: list[Record] = []
    for record in trace:
        if isinstance(record, DeliveredToDevice):
            *fields, member = record
            if member == device:
                found.append(Delivered._make(fields))
        else:
            found.append(record)
    return found


def _missing(trace: Trace, device: str, begin: int, known: list[str]) -> list[Violation]:
    """Find events published since a device began that another device got, and this one did not."""
    if any(isinstance(record, DeviceRemoved) and record.member == device for record in trace):
        return []
    due = {
        (one.client, one.sequence) for one in trace if isinstance(one, Published) and one.order > begin and not one.ttl
    }
    got: dict[str, set[tuple[str, int]]] = {}
    for record in trace:
        if isinstance(record, DeliveredToDevice):
            got.setdefault(record.member, set()).add((record.publisher, record.sequence))
    others = set[tuple[str, int]]().union(*(got.get(one, set()) for one in known))
    lacking = sorted((others & due) - got.get(device, set()))
    return [Violation("liveness", len(trace), f"{one} is missing, which another device has") for one in lacking]
