"""Events as rows of Arrow batches, and the rows as fields of events, for verification in Python."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import methodcaller
from typing import Any, Final

import pyarrow as pa
from msgspec import UNSET

from fieldfare.events import arrow
from fieldfare.events.event import Event, fields_of
from fieldfare.events.limits import EventError
from fieldfare.matching.match.batch_keys import is_text, without_views
from fieldfare.matching.match.field_decoders import MOST_PATHS
from fieldfare.matching.match.value_columns import column_of

MANY: Final = 20
"""number of events from which a batch is faster than single matches"""
_PLAIN: Final = frozenset({str, int, float, bool})
_EMPTY: Final = Event()


def batch_of(
    events: Sequence[Event], paths: Collection[str] | None, read: Callable[[Event], Mapping[str, object]] = fields_of
) -> tuple[Any, set[int]]:
    """Return events as a record batch, and the rows that the batch cannot hold; the batch is None if these are all.

    The batch has the fields at some paths, unless there are too many paths; None: all fields. `read` returns the
    fields of an event, at least those at the paths.
    """
    if paths is None or len(paths) > MOST_PATHS:
        return _whole_batch(events)
    odd: set[int] = set()
    fields = list(map(read, events))
    columns = [column_of(list(map(methodcaller("get", path, UNSET), fields)), odd) for path in paths]
    if not columns:
        return pa.record_batch([pa.nulls(len(events))], [""]), odd
    return pa.RecordBatch.from_arrays(columns, names=list(paths)), odd


def _whole_batch(events: Sequence[Event]) -> tuple[Any, set[int]]:
    """Return events as a record batch with all fields, and the rows that the batch cannot hold.

    An event of the batch has no nesting, and no null, which would be a missing field; other rows are empty.
    """
    odd = {
        row
        for row, event in enumerate(events)
        if event.valid is not None or not event.tree or not _PLAIN.issuperset(map(type, event.tree.values()))
    }
    try:
        return arrow.to_batch([_EMPTY if row in odd else event for row, event in enumerate(events)]), odd
    except EventError:  # values of different kinds in a field
        return None, set(range(len(events)))


def fields_by_row(batch: Any, rows: Iterable[int]) -> Callable[[int], Mapping[str, object]]:
    """Return a function from row to fields. For a flat batch, the fields of a row are valid until the next call."""
    if not any(pa.types.is_nested(field.type) and not arrow.is_interval(field) for field in batch.schema):
        return _View(batch).at
    wanted = sorted(set(rows))
    found = arrow.rows(without_views(batch).take(wanted)) if wanted else []
    return {row: fields_of(values) for row, values in zip(wanted, found, strict=True)}.__getitem__


class _View(Mapping[str, object]):
    """The fields of a row at a time. A column becomes a list at first use."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._lists: dict[str, list[Any]] = {}
        self._row = 0

    def at(self, row: int) -> _View:
        """Move the view to a row."""
        self._row = row
        return self

    def get(self, path: str, default: object = None) -> object:
        """Return the value of a field; a null is a missing field."""
        values = self._lists.get(path)
        if values is None:
            values = self._lists[path] = self._read(path)
        value = values[self._row]
        return default if value is None else value

    def _read(self, path: str) -> list[Any]:
        if path not in self._batch.schema.names:
            return [None] * self._batch.num_rows
        column = self._batch.column(path)
        if is_text(column.type):
            return column.to_pylist()  # type: ignore[no-any-return]
        return [row.get(path) for row in arrow.rows(self._batch.select([path]))]

    def __getitem__(self, path: str) -> object:
        value = self.get(path)
        if value is None:
            raise KeyError(path)
        return value

    def __iter__(self) -> Iterator[str]:
        return (path for path in self._batch.schema.names if self.get(path) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)
