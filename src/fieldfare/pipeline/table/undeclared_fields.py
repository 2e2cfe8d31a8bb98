"""Undeclared fields of events, which are a JSON text beside the columns: the `rest` of an event table.

A filter on declared fields is decided by columns. If a filter looks at other fields, an event with a rest is put
together again, from both, and matched as a whole: undeclared fields are still fields.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from fieldfare.events import Event, arrow, json
from fieldfare.events.limits import Limits
from fieldfare.events.values import Value

_UNLIMITED: Final = Limits(bytes=sys.maxsize, fields=sys.maxsize, depth=sys.maxsize, string=sys.maxsize)
"""no limits: the events were checked when they became columns"""
_DOTTED: Final = r'\.([^"\\]|\\.)*"\s*:'
"""a dot in a name: `{"a.b": 1}` has the field `a.b`, as `{"a": {"b": 1}}` has"""


def undecided(batch: pa.RecordBatch, rest: Any, looked_at: list[str] | None) -> list[int]:
    """Return the rows to put together: rows with a rest, if filters look at fields that may be in the rest."""
    if rest.null_count == len(rest):
        return []
    rows = rest.is_valid()
    if looked_at is not None and not set(looked_at) - set(_values("", batch.schema)):
        if not any("." in path for path in looked_at):
            return []
        rows = pc.match_substring_regex(rest, _DOTTED).fill_null(False)
    return rows.to_numpy(zero_copy_only=False).nonzero()[0].tolist()  # type: ignore[no-any-return]


def together(batch: pa.RecordBatch, rest: Iterable[str | None]) -> Iterator[Event]:
    """Yield the events of a batch of fields, each with its rest: as the events were before they became columns."""
    for event, text in zip(arrow.from_batch(batch, limits=_UNLIMITED), rest, strict=True):
        if text is None:
            yield event
        else:
            more = json.decode(text, limits=_UNLIMITED)
            yield Event(_over(event.tree, more.tree), valid=event.valid or more.valid, limits=_UNLIMITED)


def _over(tree: Mapping[str, Value], more: Mapping[str, Value]) -> dict[str, Value]:
    """Return an object with the members of another added; a list with an undeclared part is there as a whole."""
    both = dict(tree)
    for name, value in more.items():
        mine = both.get(name)
        both[name] = _over(mine, value) if isinstance(mine, Mapping) and isinstance(value, Mapping) else value
    return both


def _values(above: str, fields: Any) -> Iterator[str]:
    """Return the paths of columns that the rest cannot add to: single values."""
    for field in fields:
        if "." in field.name:  # what it is in the rest may be nested
            continue
        if arrow.is_interval(field) or not pt.is_nested(field.type):
            yield above + field.name
        elif pt.is_struct(field.type):
            yield from _values(f"{above}{field.name}.", field.type)
