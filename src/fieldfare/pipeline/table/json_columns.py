"""JSON texts to columns, in a worker: an Arrow array of texts becomes an array of typed events.

Most events of a table are plain: objects of scalars, of the declared types, in a few shapes. A shape is examined once,
and Arrow makes columns of all events of plain shapes in a chunk, with no step in Python for a value. All other events
are read one by one into an `Event`, exactly, and either fit the schema or are refused with a reason. Both ways give the
same result; the tests compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from fieldfare.events import Event, EventError, Interval, json
from fieldfare.events.cloudevents import decode_any
from fieldfare.events.json import VALID
from fieldfare.events.limits import DEFAULT_LIMITS, Limits
from fieldfare.events.values import Value
from fieldfare.pipeline.table.event_columns import ATTRIBUTES, Unknown
from fieldfare.pipeline.table.json_shapes import DOUBTFUL, Plan, Shape, planned, shape_of
from fieldfare.pipeline.table.json_timestamps import with_strings, with_times
from fieldfare.pipeline.table.typed_values import first_path, fit_object

CHUNK: Final = 1024
"""rows that become columns together: so few that their objects stay in the processor's cache"""


@dataclass(frozen=True)
class Decoder:
    """A decoder for the texts of a table with declared fields.

    The result is a struct of the `fields`, of the `ATTRIBUTES` that are not declared, of undeclared fields as the JSON
    text `rest`, and, for a refused event, of the `reason` and the `field` with the problem.
    """

    fields: pa.StructType
    unknown: Unknown = "keep"
    limits: Limits = DEFAULT_LIMITS
    _plans: dict[object, Plan] = field(default_factory=dict, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        return Decoder, (self.fields, self.unknown, self.limits)

    @property
    def attributes(self) -> dict[str, pa.DataType]:
        """The attributes that are not among the fields."""
        return {name: kind for name, kind in ATTRIBUTES.items() if self.fields.get_field_index(name) < 0}

    @property
    def result(self) -> pa.StructType:
        """The Arrow type of a decoded array."""
        texts = {"rest": pa.string(), "reason": pa.string(), "field": pa.string()}
        return pa.struct({"fields": self.fields, **self.attributes, **texts})

    def __call__(self, texts: pa.Array) -> pa.Array:
        """Decode an array of texts to an array of structs."""
        raw = texts.cast(pa.large_binary() if pt.is_large_string(texts.type) else pa.binary())
        parts = [self._chunk(raw.slice(start, CHUNK).to_pylist()) for start in range(0, len(raw), CHUNK)]
        return pa.concat_arrays(parts) if parts else pa.array([], self.result)

    def _chunk(self, texts: list[bytes | None]) -> pa.Array:
        plans = self._plans
        plain: list[dict[str, Any]] = []
        rests: list[bytes | None] = []
        places: list[int] = []
        for place, text in enumerate(texts):
            if text is None:
                continue
            try:
                tree = _read(text)
                plan = plans.get(shape := shape_of(tree))
                if plan is None:
                    plan = self._plan(shape)
            except (ValueError, RecursionError, AttributeError):  # broken, too deep, not an object
                continue
            if plan.fits(tree, text):
                plain.append(tree)
                rests.append(_write({name: tree[name] for name in plan.unknown}) if plan.unknown else None)
                places.append(place)
        found = self._columns(plain, rests) if plain else None
        if found is None:
            return self._one_by_one(texts)
        if len(places) == len(texts):
            return found
        quick = set(places)
        slow = [place for place in range(len(texts)) if place not in quick]
        order = pc.array_sort_indices(pa.array(places + slow))
        return pa.concat_arrays([found, self._one_by_one([texts[place] for place in slow])]).take(order)

    def _columns(self, trees: list[dict[str, Any]], rests: list[bytes | None]) -> pa.Array | None:
        """All trees at once; None if some value is doubtful."""
        attributes = self.attributes
        try:
            wire = pa.array(trees, with_strings(pa.struct([*self.fields, *attributes.items()])))
            read = with_times(wire, pa.struct([*self.fields, *attributes.items()]))
        except (pa.ArrowException, ValueError, OverflowError):
            return None
        columns = read.flatten()
        declared = self.fields.num_fields
        fields = pa.StructArray.from_arrays(columns[:declared], fields=list(self.fields))
        nothing = pa.nulls(len(trees), pa.string())
        parts = [fields, *columns[declared:], pa.array(rests, pa.binary()).cast(pa.string()), nothing, nothing]
        return pa.StructArray.from_arrays(parts, fields=list(self.result))

    def _one_by_one(self, texts: Sequence[bytes | None]) -> pa.Array:
        return pa.array([self.row(text) for text in texts], self.result)

    def row(self, text: bytes | None) -> dict[str, object]:
        """Decode a single text, exactly."""
        try:
            if text is None:
                raise EventError("", "there is no event")
            event = decode_any(text, limits=self.limits, timestamps=self.timestamps)
            tree = dict(event.tree) if event.valid is None else {**event.tree, VALID: event.valid}
            fields, left = fit_object(tree, self.fields, "")
            if left and self.unknown == "quarantine":
                raise EventError(first_path(left), "the field is not declared")
        except EventError as error:
            return {"reason": error.problem, "field": error.field}
        rest = _rest(left, self.limits) if left and self.unknown == "keep" else None
        found = {name: getattr(event, name) for name in self.attributes}
        return {"fields": fields, **found, "rest": rest, "reason": None, "field": None}

    @property
    def timestamps(self) -> tuple[str, ...]:
        """The names of strings that are read as timestamps; a `time` that is declared as a string stays a string."""
        index = self.fields.get_field_index("time")
        return () if index >= 0 and pt.is_string(self.fields[index].type) else ("time",)

    def _plan(self, shape: Shape) -> Plan:
        plan = planned(shape, self.fields, self.unknown, self.limits, timestamps=bool(self.timestamps))
        if plan is not DOUBTFUL:
            if len(self._plans) >= _SHAPES:  # whoever sends ever new shapes shall not fill the memory
                self._plans.clear()
            self._plans[shape] = plan
        return plan


_read: Final[Callable[[bytes], Any]] = msgspec.json.Decoder().decode
_write: Final[Callable[[object], bytes]] = msgspec.json.Encoder().encode
_SHAPES: Final = 1024


def _rest(left: Mapping[str, Value], limits: Limits) -> bytes:
    fields = dict(left)
    valid = cast("Interval | None", fields.pop(VALID, None))
    return json.encode(Event(fields, valid=valid, limits=limits))
