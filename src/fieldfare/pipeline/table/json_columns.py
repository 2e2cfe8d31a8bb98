"""JSON texts to columns, in a worker: an Arrow array of texts in, one of typed events out.

Most events of a table are plain: objects of scalars, of the declared types, in one of a few shapes. Whether a shape is
plain is found out once, and all events of plain shapes in a chunk are made columns by Arrow, with no step in Python for
a value. Everything else, and whatever is doubtful, is read one by one into an `Event`, exactly, and either fits the
schema or is refused with a reason. The two ways give the same; the tests hold them against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from fieldfare.events import Event, EventError, Interval, cloudevents, json, parse_timestamp
from fieldfare.events.cloudevents import decode_any
from fieldfare.events.json import VALID
from fieldfare.events.limits import DEFAULT_LIMITS, Limits
from fieldfare.events.values import INT64_MAX, INT64_MIN, Kind, Ordered, Value, kind_of
from fieldfare.pipeline.match.fields import is_interval

Unknown: TypeAlias = Literal["keep", "quarantine", "drop"]
"""what becomes of a field that is not declared"""

CHUNK: Final = 1024
"""rows that are made columns together: so few that their objects stay in the processor's cache"""
TIME: Final = pa.timestamp("us", "UTC")
ATTRIBUTES: Final[Mapping[str, pa.DataType]] = {
    "id": pa.string(),
    "source": pa.string(),
    "type": pa.string(),
    "time": TIME,
}
"""fields that the columns of an event table are taken from"""


@dataclass(frozen=True)
class Decoder:
    """How the texts of a table are read.

    The result is a struct of the `fields`, of those `ATTRIBUTES` that are not declared among them, of what is left over
    as the JSON text `rest`, and, for an event that is refused, of the `reason` and the `field` that it is about.
    """

    fields: pa.StructType
    unknown: Unknown = "keep"
    limits: Limits = DEFAULT_LIMITS
    _plans: dict[object, _Plan] = field(default_factory=dict, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        return Decoder, (self.fields, self.unknown, self.limits)

    @property
    def attributes(self) -> dict[str, pa.DataType]:
        """The attributes that are not among the fields."""
        return {name: kind for name, kind in ATTRIBUTES.items() if self.fields.get_field_index(name) < 0}

    @property
    def result(self) -> pa.StructType:
        """The type of what `__call__` gives."""
        texts = {"rest": pa.string(), "reason": pa.string(), "field": pa.string()}
        return pa.struct({"fields": self.fields, **self.attributes, **texts})

    def __call__(self, texts: pa.Array) -> pa.Array:
        """A struct for each text."""
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
                plan = plans.get(shape := _shape(tree))
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
            wire = pa.array(trees, _on_the_wire(pa.struct([*self.fields, *attributes.items()])))
            read = _with_times(wire, pa.struct([*self.fields, *attributes.items()]))
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
        """What one text says, exactly."""
        try:
            if text is None:
                raise EventError("", "there is no event")
            event = decode_any(text, limits=self.limits, timestamps=self.timestamps)
            tree = dict(event.tree) if event.valid is None else {**event.tree, VALID: event.valid}
            fields, left = _fit_object(tree, self.fields, "")
            if left and self.unknown == "quarantine":
                raise EventError(_first_path(left), "the field is not declared")
        except EventError as error:
            return {"reason": error.problem, "field": error.field}
        rest = _rest(left, self.limits) if left and self.unknown == "keep" else None
        found = {name: getattr(event, name) for name in self.attributes}
        return {"fields": fields, **found, "rest": rest, "reason": None, "field": None}

    @property
    def timestamps(self) -> tuple[str, ...]:
        """The strings that are read as timestamps: a `time` that is declared to be a string is left one."""
        index = self.fields.get_field_index("time")
        return () if index >= 0 and pt.is_string(self.fields[index].type) else ("time",)

    def _plan(self, shape: _Shape) -> _Plan:
        plan = _planned(shape, self)
        if plan is not _DOUBTFUL:
            if len(self._plans) >= _SHAPES:  # whoever sends ever new shapes shall not fill the memory
                self._plans.clear()
            self._plans[shape] = plan
        return plan


_read: Final[Callable[[bytes], Any]] = msgspec.json.Decoder().decode
_write: Final[Callable[[object], bytes]] = msgspec.json.Encoder().encode
_SHAPES: Final = 1024
_Shape: TypeAlias = "tuple[tuple[str, ...], tuple[Any, ...]]"


def _shape(tree: dict[str, Any]) -> _Shape:
    """The names of an object and the types of its values; its shape for an object, a set of types for a list."""
    kinds = tuple(map(type, tree.values()))
    if dict in kinds or list in kinds:
        kinds = tuple(map(_inner_shape, tree.values()))
    return tuple(tree), kinds


def _inner_shape(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return _shape(value)
    return frozenset(map(type, value)) if kind is list else kind


class _Plan(NamedTuple):
    """What to look at in an object of a plain shape."""

    quotes: int
    """in its text, if no name occurs twice and no string has a quote in it; -1 if the shape is not plain"""
    longest: int
    """bytes, so that no limit can be exceeded"""
    unknown: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    """lists of strings, each of which has quotes of its own"""
    integers: tuple[str, ...] = ()
    """integers that no column checks"""
    texts: tuple[str, ...] = ()
    """attributes that must not be empty"""

    def fits(self, tree: dict[str, Any], text: bytes) -> bool:
        """Is there nothing doubtful about the object?"""
        quotes = self.quotes
        for name in self.lists:
            quotes += 2 * len(tree[name])
        return (
            text.count(b'"') == quotes  # a name that occurs twice has quotes too, and is only once in the tree
            and len(text) <= self.longest
            and all(INT64_MIN <= tree[name] <= INT64_MAX for name in self.integers)
            and (not self.texts or (all(map(tree.get, self.texts)) and tree["specversion"] == "1.0"))
        )


_DOUBTFUL: Final = _Plan(-1, -1)
_NONE: Final = type(None)
_CLOUD_EVENT_TEXTS: Final = ("id", "source", "type", "subject", "datacontenttype", "dataschema")
_ATTRIBUTE_NAME: Final = re.compile("[a-z0-9]+")


def _planned(shape: _Shape, decoder: Decoder) -> _Plan:
    names, kinds = shape
    limits = decoder.limits
    is_cloud_event = "specversion" in names
    if is_cloud_event and not (decoder.timestamps and _is_plain_cloud_event(dict(zip(names, kinds, strict=True)))):
        return _DOUBTFUL
    declared = {part.name: part.type for part in decoder.fields}
    quotes, unknown, lists, integers = 0, [], [], []
    for name, kind in zip(names, kinds, strict=True):
        if name not in declared:
            wanted = ATTRIBUTES.get(name)
            if decoder.unknown == "quarantine" or kind not in (_PLAIN if wanted is None else (str, _NONE)):
                return _DOUBTFUL
            unknown.append(name)
            if kind is int:
                integers.append(name)
        if type(kind) is frozenset and str in kind:
            if kind != {str}:
                return _DOUBTFUL
            lists.append(name)
        counted = _quotes(name, kind, declared.get(name), limits.depth - 1)
        if counted is None:
            return _DOUBTFUL
        quotes += counted
    return _Plan(
        quotes,
        # every element and every field takes two bytes at least
        min(limits.bytes, limits.string, 2 * limits.fields),
        tuple(unknown) if decoder.unknown == "keep" else (),
        tuple(lists),
        tuple(integers),
        tuple(name for name in _CLOUD_EVENT_TEXTS if name in names) if is_cloud_event else (),
    )


def _quotes(name: str, kind: Any, declared: pa.DataType | None, depth: int) -> int | None:
    """The quotes that a member of an object has; None if its type is not plainly the declared one."""
    if name.startswith("$") or "." in name or '"' in name:
        return None
    if type(kind) is tuple:  # an object
        if declared is None or not pt.is_struct(declared) or depth < 1:
            return None
        below = {part.name: part.type for part in declared}
        if not below.keys() >= set(kind[0]) or is_interval(declared):
            return None
        parts = [
            None if type(inner) is frozenset else _quotes(inner_name, inner, below[inner_name], depth - 1)
            for inner_name, inner in zip(*kind, strict=True)
        ]
        return None if None in parts else 2 + sum(cast("list[int]", parts))
    if type(kind) is frozenset:  # a list
        if declared is None or not pt.is_list(declared) or depth < 1 or pt.is_timestamp(declared.value_type):
            return None
        return 2 if all(_is_plainly(item, declared.value_type) for item in kind) else None
    if declared is not None and not _is_plainly(kind, declared):
        return None
    return 4 if kind is str else 2


_PLAIN: Final = frozenset({str, int, float, bool, _NONE})


def _is_plainly(kind: Any, declared: pa.DataType) -> bool:
    if kind is _NONE:
        return True
    if pt.is_string(declared) or pt.is_timestamp(declared):
        return kind is str
    if pt.is_boolean(declared):
        return kind is bool
    if pt.is_int64(declared):
        return kind is int
    return pt.is_float64(declared) and (kind is float or kind is int)


def _is_plain_cloud_event(kinds: Mapping[str, Any]) -> bool:
    """All that can be told by the shape; other CloudEvents are checked one by one."""
    attributes = {name: kind for name, kind in kinds.items() if name != "data"}
    return (
        attributes.keys() >= {"id", "source", "type"}
        and attributes.keys().isdisjoint({"data_base64", cloudevents.VALIDITY})
        and all(map(_ATTRIBUTE_NAME.fullmatch, attributes))
        and set(attributes.values()) <= {str, bool}
    )


def _on_the_wire(kind: pa.DataType) -> pa.DataType:
    """The type with strings for timestamps, which is how JSON has them."""
    if pt.is_struct(kind):
        return pa.struct([part.with_type(_on_the_wire(part.type)) for part in kind])
    return pa.string() if pt.is_timestamp(kind) else kind


def _with_times(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array with timestamps for their strings; a ValueError if one of them is unusual."""
    if pt.is_timestamp(kind):
        usual = pc.match_substring_regex(array, _USUAL_TIME)
        times = array.cast(kind)
        far = pc.or_(pc.less(times, _FIRST), pc.greater(times, _LAST))
        if pc.all(usual).as_py() is False or pc.any(far).as_py():
            raise ValueError("not a timestamp in its usual form")
        return times
    if pt.is_struct(kind) and array.type != kind:
        parts = [_with_times(part, to.type) for part, to in zip(_children(array), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null() if array.null_count else None)
    return array


def _children(array: pa.Array) -> list[pa.Array]:
    return [array.field(number) for number in range(array.type.num_fields)]


_USUAL_TIME: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$"
_FIRST: Final = pa.scalar(datetime(1, 1, 2, tzinfo=UTC), TIME)
_LAST: Final = pa.scalar(datetime(9999, 12, 30, tzinfo=UTC), TIME)
"""Arrow knows years that Python does not; a day is left for time zones"""


def _fit_object(
    tree: Mapping[str, Value], kind: pa.StructType, path: str
) -> tuple[dict[str, object], dict[str, Value]]:
    """The object as Arrow takes it for a struct, and what the struct has no place for."""
    declared = {part.name: part.type for part in kind}
    fitted: dict[str, object] = {}
    left: dict[str, Value] = {}
    for name, value in tree.items():
        if name in declared:
            fitted[name], over = _fit(value, declared[name], f"{path}.{name}" if path else name)
            if over is not None:
                left[name] = over
        else:
            left[name] = value
    return fitted, left


def _fit(value: Value, kind: pa.DataType, path: str) -> tuple[object, Value]:
    """The value as Arrow takes it for a type, and what is left over, or an error."""
    if value is None:
        return None, None
    if is_interval(kind):
        if isinstance(value, Interval):
            value = {"low": value.low, "high": value.high, "closed": value.closed}
        if isinstance(value, Mapping) and value.keys() == {"low", "high", "closed"}:
            return _fit_interval(value, kind, path), None
    elif pt.is_struct(kind):
        if isinstance(value, Mapping):
            fitted, left = _fit_object(value, kind, path)
            return fitted, left or None
    elif pt.is_list(kind):
        if isinstance(value, tuple):
            pairs = [_fit(item, kind.value_type, path) for item in value]
            kept = value if any(left is not None for _, left in pairs) else None  # the whole list: a place has no name
            return [item for item, _ in pairs], kept
    elif (scalar := _scalar(value, kind)) is not None:
        return scalar, None
    raise EventError(path, f"declared as {_named(kind)}, and it is {_shown(value)}")


def _fit_interval(value: Mapping[str, Value], kind: pa.StructType, path: str) -> dict[str, object]:
    """An interval, or an object that says one, as a string may say a timestamp."""
    low, high = (cast("Ordered | None", _fit(value[end], kind.field(end).type, path)[0]) for end in ("low", "high"))
    try:
        Interval(low, high, cast(str, value["closed"]))
    except ValueError as error:
        raise EventError(path, f"declared as an interval, and {error}") from None
    return {"low": low, "high": high, "closed": value["closed"]}


def _scalar(value: Value, kind: pa.DataType) -> object | None:
    """The value as one of a type; None if it is not one."""
    match kind_of(value):
        case Kind.BOOL:
            return value if pt.is_boolean(kind) else None
        case Kind.NUMBER:
            return _number(cast("int | float", value), kind)
        case Kind.STRING:
            if pt.is_timestamp(kind):
                try:
                    return parse_timestamp(cast(str, value))
                except ValueError:
                    return None
            return value if pt.is_string(kind) else None
        case Kind.TIME:
            return value if pt.is_timestamp(kind) else None
        case Kind.BYTES:
            return value if pt.is_binary(kind) else None
        case _:
            return None


def _number(value: int | float, kind: pa.DataType) -> int | float | None:
    """The same number in another type, if it is one there."""
    if pt.is_int64(kind):
        if isinstance(value, float) and not (value.is_integer() and INT64_MIN <= value <= INT64_MAX):
            return None
        number = int(value)
        return number if INT64_MIN <= number <= INT64_MAX else None
    if pt.is_float64(kind):
        return float(value) if isinstance(value, float) or int(float(value)) == value else None
    return None


def _rest(left: Mapping[str, Value], limits: Limits) -> bytes:
    fields = dict(left)
    valid = cast("Interval | None", fields.pop(VALID, None))
    return json.encode(Event(fields, valid=valid, limits=limits))


def _first_path(left: Mapping[str, Value]) -> str:
    name, value = next(iter(left.items()))
    return f"{name}.{_first_path(value)}" if isinstance(value, Mapping) and value else name


def _named(kind: pa.DataType) -> str:
    if pt.is_struct(kind):
        return "an interval" if is_interval(kind) else "an object"
    if pt.is_list(kind):
        return "a list"
    return f"a {_NAMES.get(kind, kind)}"


_NAMES: Final = {
    pa.int64(): "long",
    pa.float64(): "double",
    TIME: "timestamp",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
}
_SHOWN: Final = 60


def _shown(value: Value) -> str:
    text = repr(value)
    return f"the {cast(Kind, kind_of(value)).value} {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"
