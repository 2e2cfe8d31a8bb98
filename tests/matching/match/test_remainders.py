"""Computed dimensions of a whole batch: the same matches as filter by filter and row by row."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tools.effort import steps

from fieldfare.events import arrow
from fieldfare.events.event import fields_of
from fieldfare.filters import parse
from fieldfare.matching.index import Index
from fieldfare.matching.match import remainders
from fieldfare.matching.match.batch_numbers import BatchNumbers, evaluated

INTEGERS = st.none() | st.integers(-3, 3) | st.sampled_from([2**53, 2**53 - 1, -(2**53), 2**62, 2**63 - 1, -(2**63)])
SMALL = st.none() | st.integers(-3, 3)
FLOATS = st.none() | st.sampled_from([0.0, -0.0, 0.5, 1.0, -2.5, 1e300, 5e-324, 2.0**53, math.inf, -math.inf, math.nan])
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "small": (pa.int32(), SMALL),
    "int": (pa.int64(), INTEGERS),
    "float": (pa.float64(), FLOATS),
    "single": (pa.float32(), st.none() | st.sampled_from([0.5, -1.0, 3.0])),
    "decimal": (pa.decimal128(38, 18), st.none() | st.sampled_from([Decimal("0.7"), Decimal(2), Decimal("1e-18")])),
    "text": (pa.string(), st.none() | st.sampled_from(["a", "ab", "1"])),
    "bool": (pa.bool_(), st.none() | st.booleans()),
    "list": (pa.list_(pa.int64()), st.none() | st.lists(st.integers(0, 2), max_size=2)),
}
NAMES = ("x", "y", "z", "s.x", "t")
NUMBERS = st.sampled_from(["0", "1", "-2", "0.5", "1e300", "9007199254740993", "9007199254740992", "0.7"])
SIGNS = st.sampled_from(["<", "<=", ">", ">=", "=", "!="])


def expressions() -> st.SearchStrategy[str]:
    one = st.sampled_from(["x", "y", "z", "s.x", "t", "gone"]) | NUMBERS
    return st.recursive(one, lambda part: st.builds("({} {} {})".format, part, st.sampled_from("+-*/%"), part))


def computed() -> st.SearchStrategy[str]:
    operation = st.builds("{} {} {}".format, expressions(), st.sampled_from("+-*/%"), expressions())
    return st.one_of(
        st.builds("{} {} {}".format, operation, SIGNS, NUMBERS),
        st.builds("{} BETWEEN {} AND {}".format, operation, NUMBERS, NUMBERS),
        st.builds("{} NOT BETWEEN {} AND {}".format, operation, NUMBERS, NUMBERS),
        st.builds("{} {} $y".format, st.sampled_from(["x", "z"]), SIGNS),
        st.builds("{} IS NOT NULL".format, operation),
        st.builds("{} IN (1, 0.5, 2)".format, operation),
    )


def filters() -> st.SearchStrategy[str]:
    plain = st.sampled_from(["x > 0", "y <= 0.5", "t = 'a'", "t LIKE 'a%'", "NOT t LIKE '%b'", "z IN (1, 2)", "t > 0"])
    return st.recursive(
        computed() | plain,
        lambda part: (
            st.builds("({} AND {})".format, part, part)
            | st.builds("({} OR {})".format, part, part)
            | part.map("NOT ({})".format)
        ),
        max_leaves=4,
    )


@st.composite
def batches(draw: st.DrawFn) -> Any:
    rows = draw(st.integers(1, 8))
    columns: dict[str, Any] = {}
    for name in NAMES:
        kind, values = KINDS[draw(st.sampled_from([*KINDS]) if name != "t" else st.just("text"))]
        if draw(st.integers(0, 5)):
            columns[name] = pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), kind)
    inner = columns.pop("s.x", None)
    if inner is not None:
        columns["s"] = pa.StructArray.from_arrays([inner], names=["x"])
    return pa.record_batch(columns) if columns else pa.record_batch({"w": pa.nulls(rows)})


def readable(texts: list[str]) -> list[Any]:
    found = []
    for text in texts:
        try:
            found.append(parse(text))
        except ValueError:  # 0.5 IS NOT NULL and other texts that are no filters
            continue
    return found


@given(batches(), st.lists(filters(), min_size=1, max_size=6))
@example(pa.record_batch({"x": [2**53 - 1], "y": [2]}), ["x + y > 9007199254740992"])
@example(pa.record_batch({"x": [1, None], "y": [0, 1]}), ["x / y > 0", "NOT (x / y > 0)"])
@example(pa.record_batch({"x": [math.nan], "y": [0.0]}), ["NOT (x + y > 0)", "x < $y", "NOT (x < $y)"])
def test_a_batch_has_the_matches_of_its_rows(batch: Any, texts: list[str]) -> None:
    wanted = readable(texts)
    index: Index[int] = Index(enumerate(wanted))
    rows = [fields_of(values) for values in arrow.rows(batch)]
    expected = {
        (row, id) for row, fields in enumerate(rows) for id, one in enumerate(wanted) if one.matches_fields(fields)
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(remainders, "FEWEST", 0)
        found = index.match_batch(batch)
    assert {*zip(found["event"].to_pylist(), found["id"].to_pylist(), strict=True)} == expected


@given(batches(), st.lists(computed(), min_size=1, max_size=4))
def test_a_column_of_values_has_the_values_of_its_rows(batch: Any, texts: list[str]) -> None:
    rows = [fields_of(values) for values in arrow.rows(batch)]
    values = BatchNumbers(batch)
    for wanted in readable(texts):
        for dimension in {dimension for branch in wanted.branches for dimension in branch}:
            if isinstance(dimension, str):
                continue
            found = values.of(dimension, pa.array(range(len(rows)), pa.int32()).to_numpy())
            if found is None:
                continue
            for fields, value, there in zip(rows, found.values.tolist(), found.there.tolist(), strict=True):
                due = dimension.evaluate(fields)
                if isinstance(due, int | float):
                    assert there
                    assert value == due or (value != value and due != due)
                else:
                    assert there is (due is None)  # the outcome null of a comparison
                    assert not there or value != value


def test_arithmetic_needs_no_python_for_each_candidate() -> None:
    index: Index[int] = Index((id, parse(f"symbol LIKE 'A%' AND bid + ask > {id}")) for id in range(50))
    work = []
    for rows in (100, 400):
        batch = pa.record_batch({"symbol": ["AB"] * rows, "bid": [20.0] * rows, "ask": [9.5] * rows})
        assert index.match_batch(batch).num_rows == 30 * rows
        work.append(steps(lambda batch=batch: index.match_batch(batch)))  # type: ignore[misc]
    assert work[1] < work[0] + 1000


def test_changed_filters_are_learnt_anew() -> None:
    index: Index[str] = Index([("a", parse("x = 1 AND x + y > 2"))])
    batch = pa.record_batch({"x": [1] * 20, "y": [1, 3] * 10})
    assert index.match_batch(batch).num_rows == 10
    index.update("a", parse("x = 1 AND x + y < 9"))
    assert index.match_batch(batch).num_rows == 20
    index.remove("a")
    assert index.match_batch(batch).num_rows == 0
    assert index.stats() is not None


def test_what_python_must_compute_is_not_answered() -> None:
    text = pa.record_batch({"x": ["a"], "y": [2**60], "z": [1]})
    values = BatchNumbers(text)
    (branch,) = parse("x + z > 1").branches
    (dimension,) = branch
    assert not isinstance(dimension, str)
    assert values.of(dimension, pa.array([0], pa.int32()).to_numpy()) is None
    assert evaluated(dimension, lambda _: None, 1) is None
