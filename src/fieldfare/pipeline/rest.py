"""Events whose fields are not all columns: what else they say is a JSON text beside them, the `rest` of an event table.

A filter that looks only at columns is decided by columns. If some filter looks further, an event with a rest is put
together again, from both, and matched as a whole: a field that nobody declared is still a field.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from fieldfare.events import Event, arrow, json
from fieldfare.events.limits import Limits
from fieldfare.events.values import Value

_UNLIMITED: Final = Limits(bytes=sys.maxsize, fields=sys.maxsize, depth=sys.maxsize, string=sys.maxsize)
"""for events that have passed their limits when they became columns"""


def undecided(batch: pa.RecordBatch, rest: Any, looked_at: list[str] | None) -> list[int]:
    """The rows that must be put together: they have a rest, and filters look at what may be in it."""
    if rest.null_count == len(rest):
        return []
    if looked_at is not None and not set(looked_at) - set(_values("", batch.schema)):
        return []
    return rest.is_valid().to_numpy(zero_copy_only=False).nonzero()[0].tolist()  # type: ignore[no-any-return]


def together(batch: pa.RecordBatch, rest: Iterable[str | None]) -> Iterator[Event]:
    """The events of a batch of fields, each with its rest: as they were before they became columns."""
    for event, text in zip(arrow.from_batch(batch, limits=_UNLIMITED), rest, strict=True):
        if text is None:
            yield event
        else:
            more = json.decode(text, limits=_UNLIMITED)
            yield Event(_over(event.tree, more.tree), valid=event.valid or more.valid, limits=_UNLIMITED)


def _over(tree: Mapping[str, Value], more: Mapping[str, Value]) -> dict[str, Value]:
    """An object with what another says beyond it; a list in which something is undeclared is there as a whole."""
    both = dict(tree)
    for name, value in more.items():
        mine = both.get(name)
        both[name] = _over(mine, value) if isinstance(mine, Mapping) and isinstance(value, Mapping) else value
    return both


def _values(above: str, fields: Any) -> Iterator[str]:
    """The paths of columns that hold all there is to know: single values."""
    for field in fields:
        if pt.is_struct(field.type):
            yield from _values(f"{above}{field.name}.", field.type)
        elif not pt.is_nested(field.type):
            yield above + field.name
