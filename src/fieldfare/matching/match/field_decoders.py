"""Decoders for some fields only, of JSON or MessagePack: a struct of the looked-at members, and msgspec skips the rest.

A nested path is a struct in a struct. A member at which a path ends is decoded whole, so that lists, objects and the
paths below are there if a value is no scalar; the event's own functions then make fields of the few members.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
from msgspec import UNSET, UnsetType

from fieldfare.events.event import Event
from fieldfare.events.limits import DEFAULT_LIMITS
from fieldfare.events.tags import as_timestamp, untag_fields
from fieldfare.matching.match.value_columns import column_of

TIMES: Final = ("time",)
"""the fields in which a string may be a timestamp, as in `fieldfare.events.json`"""
_SCALARS: Final[frozenset[type]] = frozenset({str, int, float, bool, type(None)})
MOST_PATHS: Final = 64
"""paths from which a struct takes longer than whole objects: each path costs something even if a text lacks it"""
_MOST_CUTS: Final = 6
"""dots in a path that may be dots of names; the ways to read a path double with each"""
UNWRITABLE: Final = re.compile('[\\x00-\\x1f"\\\\]')
"""characters that a name of a struct cannot have; JSON has them as escapes, which only the full reader reads"""


class Form(NamedTuple):
    """Everything in which decoders of JSON and of MessagePack differ."""

    decoder: Callable[[Any], Any]
    event: Callable[[dict[str, Any]], Event]
    """makes an event of decoded members"""
    scalars: frozenset[type]
    """kinds of decoded values that are values of fields as they are"""
    times: Collection[str] = ()
    """fields in which a string may be a timestamp"""


JSON: Final = Form(
    msgspec.json.Decoder,
    lambda tree: Event(untag_fields(tree, "", 0, DEFAULT_LIMITS, TIMES)),
    _SCALARS,
    TIMES,
)
MSGPACK: Final = Form(msgspec.msgpack.Decoder, Event, _SCALARS | {datetime, bytes})


def decoders_of(paths: Collection[str], *, dotted: bool) -> Decoders:
    """Return decoders for texts without and with dots in names; no `dotted`, or too many dots in paths: None."""
    if len(paths) > MOST_PATHS:
        return WideDecoder(paths), None
    few = all(path.count(".") <= _MOST_CUTS for path in paths)
    return Decoder(paths, dotted=False), Decoder(paths, dotted=True) if few and dotted else None


Decoders: TypeAlias = "tuple[Decoder | WideDecoder, Decoder | None]"
"""decoders for texts without and with dots in names; in the place of the judgement of a text"""


class Columns(NamedTuple):
    """The looked-at fields of many texts, as a record batch, and the rows that a column cannot hold."""

    batch: Any
    odd: dict[int, Mapping[str, object]]
    """the fields of the rows with lists, objects, nulls, or values of another kind than most"""


class Decoder:
    """A decoder for the fields at some paths, from texts that the full reader would accept."""

    def __init__(self, paths: Collection[str], *, dotted: bool, form: Form = JSON) -> None:
        """Make a decoder; with `dotted`, names with dots are found too, and more slowly."""
        reachable = [path for path in paths if dotted or path.count(".") < DEFAULT_LIMITS.depth]
        shape = _shape_of(frozenset(reachable), dotted=dotted)
        self._form = form
        self._decoder = form.decoder(shape)
        self.decode: Callable[[bytes], Any] = self._decoder.decode
        """reads a text; ValueError for a text that is not JSON"""
        places = {} if dotted else dict(_places(shape))
        self._paths = tuple(places)
        self._getters = [attrgetter(place) for place in places.values()]
        self._get = attrgetter(*places.values()) if len(places) > 1 else None
        self._times = not places.keys().isdisjoint(form.times)
        self._or_missing = form.scalars | {UnsetType}

    def fields(self, top: Any) -> Mapping[str, object]:
        """Return the fields of a text that `decode` has read."""
        if not self._paths:
            return self._read_whole(top)
        try:
            values = self._get(top) if self._get is not None else (self._getters[0](top),)
        except AttributeError:  # a list or a scalar where a path goes on
            return self._read_whole(top)
        if self._form.scalars.issuperset(map(type, values)):
            fields = dict(zip(self._paths, values))  # noqa: B905 - `strict` takes half as long again
        elif self._or_missing.issuperset(map(type, values)):
            fields = {path: value for path, value in zip(self._paths, values, strict=True) if value is not UNSET}
        else:
            return self._read_whole(top)
        return _with_times(fields) if self._times else fields

    def _read_whole(self, top: Any) -> Mapping[str, object]:
        """Return the fields of the decoded members as an event of these members has them."""
        return self._form.event(_tree(top)).fields

    def columns(self, lines: bytes | memoryview, count: int) -> Columns:
        """Return the fields of some lines. ValueError if there are not as many lines of JSON."""
        tops = self._decoder.decode_lines(lines)
        if len(tops) != count:
            raise ValueError(f"{len(tops)} texts in {count} lines")
        if not self._paths:
            return Columns(pa.record_batch([pa.nulls(count)], [""]), dict(enumerate(map(self._read_whole, tops))))
        odd: set[int] = set()
        arrays = [self._column(path, get, tops, odd) for path, get in zip(self._paths, self._getters, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, names=self._paths)
        return Columns(batch, {row: self.fields(tops[row]) for row in sorted(odd)})

    @staticmethod
    def _column(path: str, get: Callable[[Any], Any], tops: Sequence[Any], odd: set[int]) -> Any:
        try:
            values = list(map(get, tops))
        except AttributeError:
            values = [_value(get, top) for top in tops]
        if path in TIMES:
            values = [(as_timestamp(value) or value) if type(value) is str else value for value in values]
        return column_of(values, odd)


class WideDecoder:
    """A decoder for many paths, which reads whole objects and drops the members that lead nowhere."""

    def __init__(self, paths: Collection[str], *, form: Form = JSON) -> None:
        self._form = form
        self._decoder = form.decoder(dict[str, Any])
        self.decode: Callable[[bytes], Any] = self._decoder.decode
        self._names = frozenset(path.partition(".")[0] for path in paths)

    def fields(self, top: dict[str, Any]) -> Mapping[str, object]:
        """Return the fields of a text that `decode` has read."""
        names = self._names
        tree = {name: value for name, value in top.items() if name in names}
        if self._form.scalars.issuperset(map(type, tree.values())):
            return _with_times(tree) if self._form.times else tree
        return self._form.event(tree).fields

    def columns(self, lines: bytes | memoryview, count: int) -> Columns:
        """Return the fields of some lines, none of them in columns: most columns would be empty."""
        tops = self._decoder.decode_lines(lines)
        if len(tops) != count:
            raise ValueError(f"{len(tops)} texts in {count} lines")
        return Columns(pa.record_batch([pa.nulls(count)], [""]), dict(enumerate(map(self.fields, tops))))


def _with_times(fields: dict[str, Any]) -> dict[str, Any]:
    """Return fields with timestamps where a string may be one."""
    for path in TIMES:
        if type(text := fields.get(path)) is str:
            fields[path] = as_timestamp(text) or text
    return fields


def _value(get: Callable[[Any], Any], top: Any) -> Any:
    """Return a value, or an object for the odd rows where a path leads through a list or a scalar."""
    try:
        return get(top)
    except AttributeError:
        return {}


def _shape_of(paths: frozenset[str], *, dotted: bool) -> type[msgspec.Struct]:
    """Return the struct type of the members that lead to some paths."""
    below: dict[str, set[str]] = {}
    whole: set[str] = set()
    for path in paths:
        for name, rest in _cuts(path, dotted=dotted):
            if UNWRITABLE.search(name):
                continue
            if rest is None:
                whole.add(name)
            else:
                below.setdefault(name, set()).add(rest)
    members: list[tuple[str, Any, Any]] = []
    for place, name in enumerate(sorted(whole | below.keys())):
        kind: Any = Any
        default: Any = UNSET
        if name not in whole:
            inner = _shape_of(frozenset(below[name]), dotted=dotted)
            kind, default = inner | list[Any] | str | int | float | bool | None, inner()
        members.append((f"f{place}", kind, msgspec.field(name=name, default=default)))
    return msgspec.defstruct("Members", members, frozen=True, gc=False)


def _cuts(path: str, *, dotted: bool) -> Iterator[tuple[str, str | None]]:
    """Yield the ways to read a path as a name and a path below; None if the path is the name alone."""
    name, dot, rest = path.partition(".")
    if dot or not dotted:
        yield name, rest if dot else None
    if dotted:
        yield path, None
        while dot and "." in rest:
            more, _, rest = rest.partition(".")
            name = f"{name}.{more}"
            yield name, rest


def _places(shape: type[msgspec.Struct], path: str = "", place: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each member that is decoded whole, and its attributes, with dots between them."""
    for field in msgspec.structs.fields(shape):
        if field.type is Any:
            yield path + field.encode_name, place + field.name
        else:
            yield from _places(type(field.default), f"{path}{field.encode_name}.", f"{place}{field.name}.")


def _tree(members: msgspec.Struct) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for attribute, name in zip(members.__struct_fields__, members.__struct_encode_fields__, strict=True):
        value = getattr(members, attribute)
        if isinstance(value, msgspec.Struct):
            if inner := _tree(value):  # an object without looked-at members may be the default of a missing one
                tree[name] = inner
        elif value is not UNSET:
            tree[name] = value
    return tree
