"""Rows as events: the column `event` holds an event as JSON, or else all columns are fields."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from fieldfare.events import arrow
from fieldfare.events.cloudevents import decode_any
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError

COLUMN: Final = "event"


def of_batch(batch: pa.RecordBatch) -> list[Event | EventError]:
    """Return an event for each row, or the error in the row."""
    if COLUMN in batch.schema.names:
        return [of_text(text) for text in batch.column(COLUMN).to_pylist()]
    return list(arrow.from_batch(batch))


def of_text(text: str | None) -> Event | EventError:
    """Decode the event in a text: plain or tagged JSON, or a CloudEvent.

    >>> of_text('{"price": 5}')
    Event({'price': 5})
    >>> of_text("5")
    EventError(...)
    """
    if text is None:
        return EventError("", "there is none: the text is null")
    try:
        return decode_any(text)
    except EventError as error:
        return error
