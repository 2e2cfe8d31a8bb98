"""Deliveries as parts of frames, from waiting deliveries and their journal entries; a pure function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from fieldfare.core.state import Pending
from fieldfare.events import json, msgpack
from fieldfare.protocol.frames import Delivery
from fieldfare.protocol.journal import JournalEntry, channel_number_of, event_id

CHUNK_BYTES: Final = 256 << 10
"""Size in bytes from which on a frame is not filled further."""


class DeliveryParts(NamedTuple):
    """Deliveries for the frames of a client."""

    parts: list[list[Delivery]]
    """The deliveries of each frame."""
    withheld: list[int]
    """Numbers of the deliveries that the client may not read any more."""
    missing: int
    """How many events the log no longer has."""


def delivery_parts(
    waiting: Sequence[tuple[int, Pending]],
    entries: Mapping[int, JournalEntry],
    may_have: Callable[[int, JournalEntry], bool],
    *,
    as_json: bool,
    identified: bool,
) -> DeliveryParts:
    """Return deliveries in parts of a good size.

    With `identified`, each delivery names its event by the publisher's identity and sequence number: clients of
    sessions with replicas recognise repeated events by that. Replayed events are never in doubt and need no name.
    """
    parts: list[list[Delivery]] = [[]]
    withheld: list[int] = []
    missing = size = 0
    for number, pending in waiting:
        entry = entries.get(pending.position)
        if entry is None:
            missing += 1
            continue
        if not may_have(number, entry):
            withheld.append(number)
            continue
        event = json.encode(msgpack.decode(entry.event)) if as_json else entry.event
        weight = len(event) + sum(map(len, pending.subscriptions))
        if size + weight > CHUNK_BYTES and parts[-1]:
            parts.append([])
            size = 0
        size += weight
        about = event_id(entry)[1:] if identified and not pending.replayed else ("", 0)
        where = entry.position, entry.time, entry.publisher
        more = *about, channel_number_of(entry)
        parts[-1].append(Delivery(number, *where, msgspec.Raw(event), pending.subscriptions, *more))
    return DeliveryParts([part for part in parts if part], withheld, missing)
