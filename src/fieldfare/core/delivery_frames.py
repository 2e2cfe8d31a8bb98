"""Deliveries as parts of frames, from waiting deliveries and their journal entries; a pure function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
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
    may_have: Callable[[int, JournalEntry], bool] | None,
    *,
    as_json: bool,
    identified: bool,
) -> DeliveryParts:
    """Return deliveries in parts of a good size.

    `may_have` tells whether the client may read a delivery; without, the client may read all. With `identified`, each
    delivery names its event by the publisher's identity and sequence number: clients of sessions with replicas
    recognise repeated events by that. Replayed events are never in doubt and need no name.
    """
    encoded: Callable[[bytes], msgspec.Raw] = _as_json if as_json else msgspec.Raw
    part: list[Delivery] = []
    parts = [part]
    withheld: list[int] = []
    missing = size = 0
    for number, pending in waiting:
        entry = entries.get(pending.position)
        if entry is None:
            missing += 1
            continue
        if may_have is not None and not may_have(number, entry):
            withheld.append(number)
            continue
        position, time, publisher, _, event, _ = entry
        subscriptions = pending.subscriptions
        size += len(event) + (len(subscriptions[0]) if len(subscriptions) == 1 else sum(map(len, subscriptions)))
        if size > CHUNK_BYTES and part:
            part = []
            parts.append(part)
            size = 0
        by, sequence = event_id(entry)[1:] if identified and not pending.replayed else ("", 0)
        about = encoded(event), subscriptions, by, sequence, channel_number_of(entry)
        part.append(Delivery(number, position, time, publisher, *about))
    return DeliveryParts([part for part in parts if part], withheld, missing)


def _as_json(event: bytes) -> msgspec.Raw:
    """Return an event in JSON, encoded once for all clients."""
    return _small_as_json(event) if len(event) < _SMALL else _small_as_json.__wrapped__(event)


@lru_cache(1024)
def _small_as_json(event: bytes) -> msgspec.Raw:
    return msgspec.Raw(json.encode(msgpack.decode(event)))


_SMALL: Final = 16 << 10
"""Size in bytes from which on an event is not remembered in JSON."""
