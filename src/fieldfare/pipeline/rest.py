"""Events whose fields are not all columns: what else they say is a JSON text beside them, the `rest` of an event table.

A filter that looks only at columns is decided by columns. If some filter looks further, an event with a rest is put
together again, from both, and matched as a whole: a field that nobody declared is still a field.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from fieldfare.events import Event
from fieldfare.events.arrow import rows
from fieldfare.events.json import VALID, decode


def undecided(batch: pa.RecordBatch, rest: Any, looked_at: list[str] | None) -> list[int]:
    """The rows that must be put together: they have a rest, and filters look at what may be in it."""
    if rest is None or rest.null_count == len(rest):
        return []
    if looked_at is not None and not set(looked_at) - set(_values("", batch.schema)):
        return []
    return rest.is_valid().to_numpy(zero_copy_only=False).nonzero()[0].tolist()  # type: ignore[no-any-return]


def together(batch: pa.RecordBatch, rest: Any, chosen: list[int]) -> Iterator[Event]:
    """Those events, as they were before they became columns."""
    texts = rest.take(pa.array(chosen)).to_pylist()
    for row, text in zip(rows(batch.take(pa.array(chosen))), texts, strict=True):
        valid = row.pop(VALID, None)
        more = decode(text, timestamps=())
        yield Event(_joined(row, more.tree), valid=valid)  # type: ignore[arg-type]  # a column of periods


def _joined(one: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(one)
    for name, value in more.items():
        both = isinstance(value, Mapping) and isinstance(found.get(name), Mapping)
        found[name] = _joined(found[name], value) if both else value
    return found


def _values(above: str, fields: Any) -> Iterator[str]:
    """The paths of columns that hold all there is to know: single values."""
    for field in fields:
        if pt.is_struct(field.type):
            yield from _values(f"{above}{field.name}.", field.type)
        elif not pt.is_nested(field.type):
            yield above + field.name
