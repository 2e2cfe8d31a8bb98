"""Arrow: round trips of batches, every type of column, and what does not fit into one."""

from __future__ import annotations

import contextlib
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.events.strategies import datas, events, floats, integers, intervals, periods, same, texts, times

from fieldfare.events import Event, EventError, Interval, Limits, arrow

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)

integer_intervals = intervals(integers)
columns: st.SearchStrategy[st.SearchStrategy[Any]] = st.recursive(
    st.sampled_from(
        [st.booleans(), integers, floats, texts, datas, times, integer_intervals, intervals(times), intervals(texts)]
    ),
    lambda inner: (
        st.builds(lambda item: st.lists(item, max_size=3), inner)
        | st.dictionaries(st.text("abc", max_size=2), inner, max_size=2).map(
            lambda parts: st.fixed_dictionaries({}, optional=parts)
        )
    ),
    max_leaves=4,
)


@st.composite
def batches(draw: st.DrawFn) -> list[Event]:
    """Events whose fields of one name are of one type, as in a table; any field may be missing."""
    shape = draw(st.dictionaries(st.text("abcé", max_size=2), columns, max_size=4))
    rows = draw(st.lists(st.tuples(st.fixed_dictionaries({}, optional=shape), periods), max_size=5))
    return [Event(tree, valid=valid) for tree, valid in rows]


@given(batches())
def test_what_is_written_is_read(given_events: list[Event]) -> None:
    batch = arrow.to_batch(given_events)
    batch.validate(full=True)
    assert batch.num_rows == len(given_events)
    assert same(tuple(arrow.from_batch(batch)), tuple(given_events))


@given(batches())
def test_it_survives_the_ipc_format(given_events: list[Event]) -> None:
    batch = arrow.to_batch(given_events)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pa.ipc.open_stream(sink.getvalue()) as reader:
        assert same(tuple(arrow.from_batch(reader.read_next_batch())), tuple(given_events))


@given(st.lists(events, max_size=3))
def test_any_events_are_written_or_refused(given_events: list[Event]) -> None:
    with contextlib.suppress(EventError):
        assert len(arrow.from_batch(arrow.to_batch(given_events))) == len(given_events)


def test_types_of_columns() -> None:
    event = Event(
        {"n": 1, "f": 1.5, "b": True, "s": "x", "d": b"x", "t": NOON, "l": [1, 2], "o": {"x": 1}, "i": Interval(1, 2)},
        valid=Interval(NOON, None),
    )
    schema = arrow.to_batch([event]).schema
    ends = pa.timestamp("us", "UTC")
    assert {name: schema.field(name).type for name in schema.names} == {
        "n": pa.int64(),
        "f": pa.float64(),
        "b": pa.bool_(),
        "s": pa.string(),
        "d": pa.binary(),
        "t": pa.timestamp("us", "UTC"),
        "l": pa.list_(pa.int64()),
        "o": pa.struct([("x", pa.int64())]),
        "i": pa.struct([("low", pa.int64()), ("high", pa.int64()), ("closed", pa.string())]),
        "$valid": pa.struct([("low", ends), ("high", ends), ("closed", pa.string())]),
    }
    assert schema.field("i").metadata == {b"fieldfare": b"interval"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a"], "field 'a': a column cannot hold both number and string"),
        ([True, 1], "field 'a': a column cannot hold both bool and number"),
        ([True, 1.5], "field 'a': a column cannot hold both bool and number"),
        (["a", b"a"], "field 'a': a column cannot hold both bytes and string"),
        ([[1], 1], "field 'a': a column cannot hold both list and number"),
        ([[1, "a"]], "field 'a': a column cannot hold both number and string"),
        ([{"b": 1}, {"b": "a"}], "field 'a.b': a column cannot hold both number and string"),
        ([1, Interval(1, 2)], "field 'a': a column cannot hold both interval and number"),
        ([Interval(1, 2), Interval("a", "b")], "field 'a': a column cannot hold both number and string"),
        ([2**53 + 1, 1.5], "field 'a': the column holds floats too, and the integer 9007199254740993 is none exactly"),
    ],
)
def test_mixed_columns(values: list[object], message: str) -> None:
    with pytest.raises(EventError) as caught:
        arrow.to_batch([Event(a=value) for value in values])
    assert str(caught.value) == message


def test_integers_among_floats_become_floats_if_exact() -> None:
    batch = arrow.to_batch([Event(a=2**60), Event(a=1.5), Event()])
    assert same(tuple(arrow.from_batch(batch)), (Event(a=float(2**60)), Event(a=1.5), Event()))


def test_null_and_missing() -> None:
    batch = arrow.to_batch([Event(a=1, b=None), Event(b={"x": 1}), Event(a=3, b={"y": None}), Event(c=[None, 1])])
    assert arrow.rows(batch) == [{"a": 1}, {"b": {"x": 1}}, {"a": 3, "b": {}}, {"c": (None, 1)}]
    assert arrow.rows(batch, nulls="null") == [
        {"a": 1, "b": None, "c": None},
        {"a": None, "b": {"x": 1, "y": None}, "c": None},
        {"a": 3, "b": {"x": None, "y": None}, "c": None},
        {"a": None, "b": None, "c": (None, 1)},
    ]
    assert arrow.from_batch(batch, nulls="null")[0] == Event(a=1, b=None, c=None)


def test_batches_without_columns_or_rows() -> None:
    assert arrow.from_batch(arrow.to_batch([])) == []
    assert arrow.from_batch(arrow.to_batch([Event(), Event()])) == [Event(), Event()]


def column(values: list[Any], kind: pa.DataType | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["a"])


ROUND = NOON.replace(microsecond=123456)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, None], pa.int8()), (1, None)),
        (pa.array([2**32 - 1], pa.uint32()), (2**32 - 1,)),
        (pa.array([2**63 - 1], pa.uint64()), (2**63 - 1,)),
        (pa.array([0.5], pa.float16()), (0.5,)),
        (pa.array([1.5], pa.float32()), (1.5,)),
        (pa.array([math.nan]), (math.nan,)),
        (pa.array(["x", None], pa.large_string()), ("x", None)),
        (pa.array(["x"], pa.string_view()), ("x",)),
        (pa.array([b"x"], pa.large_binary()), (b"x",)),
        (pa.array([b"x"], pa.binary_view()), (b"x",)),
        (pa.array([b"xy"], pa.binary(2)), (b"xy",)),
        (pa.array(["x", "y", "x", None]).dictionary_encode(), ("x", "y", "x", None)),
        (pa.array([2**63 - 1], pa.uint64()).dictionary_encode(), (2**63 - 1,)),
        (pa.array([["x"]], pa.list_(pa.dictionary(pa.int8(), pa.string()))), (("x",),)),
        (pa.array([NOON], pa.timestamp("s", "UTC")), (NOON,)),
        (pa.array([NOON], pa.timestamp("ms", "Europe/Paris")), (NOON,)),
        (pa.array([ROUND], pa.timestamp("us", "+05:30")), (ROUND,)),
        (pa.array([1_500], pa.int64()).cast(pa.timestamp("ns", "UTC")), (datetime(1970, 1, 1, 0, 0, 0, 1, UTC),)),
        (pa.array([Decimal("1.25"), None], pa.decimal128(5, 2)), (1.25, None)),
        (pa.array([Decimal(2**53 + 1)], pa.decimal128(20, 0)), (2**53 + 1,)),
        (pa.array([Decimal(2**64)], pa.decimal256(40, 0)), (float(2**64),)),
        (pa.array([{"x": Decimal("0.5")}], pa.struct([("x", pa.decimal128(5, 2))])), ({"x": 0.5},)),
        (pa.array([["x"], None], pa.large_list(pa.string())), (("x",), None)),
        (pa.array([[1, 2]], pa.list_(pa.int64(), 2)), ((1, 2),)),
        (pa.array([[{"x": 1}, {"x": None}]]), (({"x": 1}, {}),)),
        (pa.nulls(2), (None, None)),
    ],
)
def test_columns_that_are_read(array: pa.Array, expected: tuple[object, ...]) -> None:
    batch = pa.RecordBatch.from_arrays([array], names=["a"])
    wanted = [Event() if value is None else Event(a=value) for value in expected]
    assert same(tuple(arrow.from_batch(batch)), tuple(wanted))


def interval_column(**changes: object) -> pa.RecordBatch:
    value = {"low": 1, "high": 2, "closed": "[]", **changes}
    array = pa.array([value])
    schema = pa.schema([pa.field("a", array.type, metadata={"fieldfare": "interval"})])
    return pa.RecordBatch.from_arrays([array], schema=schema)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (column([2**63], pa.uint64()), "field 'a': Integer value 9223372036854775808 not in range"),
        (
            column([Decimal("0.10000000000000000001")]),
            "field 'a': the decimal 0.10000000000000000001 is no float exactly",
        ),
        (column([Decimal(2**64 + 1)]), "field 'a': the decimal 18446744073709551617 is no float exactly"),
        (
            column([{"b": [Decimal("0.10000000000000000001")]}]),
            "field 'a.b': the decimal 0.10000000000000000001 is no float exactly",
        ),
        (column([NOON], pa.timestamp("us")), "field 'a': the timestamps have no time zone"),
        (column([{"b": 0}], pa.struct([("b", pa.timestamp("us"))])), "field 'a.b': the timestamps have no time zone"),
        (column([2**62], pa.timestamp("us", "UTC")), "field 'a': a value cannot be read: "),
        (column([2**62], pa.timestamp("s", "UTC")), "field 'a': Casting from timestamp"),
        (column([NOON.date()]), "field 'a': the Arrow type date32[day] is not one a field can hold"),
        (column([timedelta(1)]), "field 'a': the Arrow type duration[us] is not one a field can hold"),
        (column([{"b": NOON.date()}]), "field 'a.b': the Arrow type date32[day] is not one a field can hold"),
        (
            pa.RecordBatch.from_arrays([pa.array([b"\xff"]).view(pa.string())], names=["a"]),
            "field 'a': a value cannot be read: 'utf-8' codec can't decode",
        ),
        (pa.RecordBatch.from_arrays([pa.array([1]), pa.array([1])], names=["a", "a"]), "field 'a': two columns have"),
        (
            pa.RecordBatch.from_arrays(
                [pa.StructArray.from_arrays([pa.array([1])] * 2, names=["b", "b"])], names=["a"]
            ),
            "field 'a.b': two columns have this name",
        ),
        (interval_column(low=3), "field 'a': not an interval: the interval Interval('[3, 2]') is empty"),
        (interval_column(closed=None), "field 'a': not an interval: closed must be one of"),
        (column([1]).rename_columns(["$valid"]), "field '$valid': the column is reserved for validity periods"),
    ],
)
def test_columns_that_are_refused(batch: pa.RecordBatch, message: str) -> None:
    with pytest.raises(EventError) as caught:
        arrow.from_batch(batch)
    assert str(caught.value).startswith(message)


def test_the_limits_hold_for_each_row() -> None:
    batch = column(["ab", "abc"])
    with pytest.raises(EventError, match=r"^field 'a': 3 characters, more than the limit of 2 \(row 2\)$"):
        arrow.from_batch(batch, limits=Limits(string=2))


def test_reserved_name() -> None:
    with pytest.raises(EventError, match=r"field '\$valid': the name is reserved"):
        arrow.to_batch([Event({"$valid": 1})])


def test_slices_and_filtered_batches_are_read() -> None:
    batch = arrow.to_batch([Event(n=n, i=Interval(n, None), o={"n": n}, l=[n]) for n in range(5)])
    assert arrow.from_batch(batch.slice(3, 1)) == [Event(n=3, i=Interval(3, None), o={"n": 3}, l=[3])]
    assert [event["o.n"] for event in arrow.from_batch(batch.filter(pc.field("n") > 2))] == [3, 4]
