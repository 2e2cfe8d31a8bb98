"""The engine over Arrow batches in a worker: numbers of matching subscriptions, some events at a time.

The number of events that are matched at once follows the number of their matches, so that memory bounds the fan-out
even where each event matches every subscription.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fieldfare.events import EventError
from fieldfare.events.cloudevents import decode_any
from fieldfare.filters.constraint import Mode as Reading
from fieldfare.pipeline.match.catalogue import Opened
from fieldfare.pipeline.match.fields import as_batch
from fieldfare.pipeline.table.undeclared_fields import together, undecided

Ints = NDArray[np.int64]
Mode = Literal["point", "overlap", "cover"]
READINGS: Final[Mapping[Mode, Reading]] = {"point": "overlaps", "overlap": "overlaps", "cover": "covers"}
PAIRS: Final = 1 << 20
"""matches that a worker gathers, before it hands them on"""
_FEWEST: Final = 64
_MOST: Final = 8_192
_AT_FIRST: Final = 1 << 23
"""matches of the rows that are matched at first, if every subscription matches every event: as many may match"""
_WORST: Final = 1 << 27
"""matches of the rows that are matched at once, if every subscription matches every event"""


class Pairs(NamedTuple):
    """The matches of successive events."""

    counts: Ints
    """for each event, the number of matching subscriptions"""
    numbers: Ints
    """the numbers of these subscriptions in the catalogue, event after event"""


def matched(
    opened: Opened, given: Any, more: Any = None, *, mode: Mode = "point", json: str | None = None
) -> Iterator[Pairs]:
    """Yield the matches of an array of structs of fields, or of texts in a column named `json`; some events at once.

    `more` has the undeclared fields of each event as JSON, see `undeclared_fields`.
    """
    if json is not None:
        found = _in_texts(opened, given, json, READINGS[mode])
    else:
        batch = as_batch(given, opened.about.fields, intervals=mode != "point")
        found = _in_fields(opened, batch, more, READINGS[mode])
    return _gathered(found)


def _gathered(found: Iterator[Pairs]) -> Iterator[Pairs]:
    waiting: list[Pairs] = []
    matches = 0
    for one in found:
        waiting.append(one)
        matches += len(one.numbers)
        if matches >= PAIRS:
            yield _joined(waiting)
            waiting, matches = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[Pairs]) -> Pairs:
    return parts[0] if len(parts) == 1 else Pairs(*map(np.concatenate, zip(*parts, strict=True)))


def _in_fields(opened: Opened, batch: Any, more: Any, reading: Reading) -> Iterator[Pairs]:
    start, step = 0, _first(opened.about.count)
    while start < batch.num_rows:
        part = batch.slice(start, step)
        rest = more.slice(start, step) if more is not None else None
        found = opened.index.match_batch(part, reading)
        event, number = found["event"].to_numpy(), _whole(found["id"])
        if rest is not None and (chosen := undecided(part, rest, opened.about.fields)):
            rows = pa.array(chosen)
            whole = together(part.take(rows), rest.take(rows).to_pylist())
            exact = opened.index.match_many([*whole], reading)
            keep = ~np.isin(event, chosen)
            event = np.concatenate([event[keep], np.repeat(chosen, [*map(len, exact)])])
            order = np.argsort(event, kind="stable")
            event = event[order]
            number = np.concatenate([number[keep], np.array([*chain.from_iterable(exact)], np.int64)])[order]
        yield Pairs(np.bincount(event, minlength=part.num_rows), number)
        start, step = start + step, _next(step, len(number), opened.about.count)


def _whole(numbers: Any) -> Ints:
    found: Ints = numbers.to_numpy().astype(np.int64, copy=False)  # without subscriptions, ids have no type
    return found


def _in_texts(opened: Opened, texts: Any, column: str, reading: Reading) -> Iterator[Pairs]:
    """Yield the matches of events that are texts; a null is an event without fields."""
    start, step = 0, _first(opened.about.count)
    while start < len(texts):
        part = ["{}" if text is None else text for text in texts.slice(start, step).to_pylist()]
        try:
            found = opened.index.match_json_lines(part, reading, cloudevents=True)
        except EventError:
            raise _refusal(texts, column) from None
        if not all(map(str.strip, part)):  # an empty line among lines, and no event here
            raise _refusal(texts, column)
        number = _whole(found["id"])
        start, step = start + step, _next(step, len(number), opened.about.count)
        yield Pairs(np.bincount(found["event"].to_numpy(), minlength=len(part)), number)


def _refusal(texts: Any, column: str) -> EventError:
    """Return the error of the first text that is no event, which stops the job: the text would be lost otherwise."""
    for row, text in enumerate(texts.to_pylist(), 1):
        try:
            if text is not None:
                decode_any(text)
        except EventError as error:
            return EventError(column, f"row {row} of the batch is no event: {error}; normalise() first")
    raise AssertionError("every text is an event")


def _first(subscriptions: int) -> int:
    """Return the number of rows to match first, while the number of their matches is unknown."""
    return max(_FEWEST, min(_MOST, _AT_FIRST // max(1, subscriptions)))


def _next(rows: int, matches: int, subscriptions: int) -> int:
    """Return the number of rows to match next, after some rows with some matches."""
    most = max(256, min(_MOST, _WORST // max(1, subscriptions)))
    return min(most, 4 * rows) if matches <= PAIRS // 4 else max(_FEWEST, min(most, rows * PAIRS // matches))
