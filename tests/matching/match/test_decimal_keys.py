"""Decimals of Arrow batches are matched as exact numbers: the oracle compares fractions, and knows no float."""

from __future__ import annotations

import operator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fieldfare.events.decimals import Between, number
from fieldfare.filters import Filter, parse
from fieldfare.matching.index import Index
from fieldfare.matching.match import decimal_keys

KINDS = [
    *(pa.decimal128(5, 2), pa.decimal128(15, 15), pa.decimal128(18, 0), pa.decimal128(20, 0), pa.decimal128(38, 18)),
    *(pa.decimal128(20, 3), pa.decimal128(38, 30), pa.decimal256(60, 20), pa.decimal128(9, -2)),
]
TESTS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
NEAR = [0.7, -1.4, 0.1, 1e15, 2.0**53, 2.0**53 + 2, 0.3, 1e-15, 5e-324, 12.34, 9007199254740993, 0, 2**63]


def exact(operand: float) -> Fraction:
    """The number that is written in a filter, as far as a float can be written."""
    return Fraction(repr(operand)) if abs(operand) < 2**53 else Fraction(operand)


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.DataType, list[Decimal | None]]:
    kind = draw(st.sampled_from(KINDS))
    digits = 10**kind.precision - 1
    unscaled = st.one_of(
        st.integers(-digits, digits),
        st.integers(-999, 999),
        st.sampled_from(NEAR).flatmap(
            lambda x: st.integers(-2, 2).map(lambda more: int(exact(x) * Fraction(10) ** kind.scale) + more)
        ),
    ).filter(lambda value: abs(value) <= digits)
    values = draw(st.lists(st.none() | unscaled.map(lambda value: Decimal(f"{value}E{-kind.scale}")), max_size=6))
    return kind, values


def near(value: Decimal | None) -> float:
    return 0.0 if value is None else float(value)


@given(columns(), st.data())
@example((pa.decimal128(5, 2), [Decimal("0.70")]), None)
@example((pa.decimal128(20, 0), [Decimal(2**53 + 1)]), None)
@example((pa.decimal128(38, 18), [Decimal("0.700000000000000001")]), None)
def test_decimals_compare_as_exact_numbers(given: tuple[pa.DataType, list[Decimal | None]], data: Any) -> None:
    kind, values = given
    own = [near(value) for value in values]
    operands = [*NEAR, *own, *(int(value) for value in own)]
    if data is not None:
        operands = data.draw(st.lists(st.sampled_from(operands) | st.floats(-1e20, 1e20), min_size=1, max_size=6))
    asked = [(sign, operand) for operand in operands for sign in TESTS]
    index: Index[int] = Index((id, parse(f"d {sign} {operand!r}")) for id, (sign, operand) in enumerate(asked))
    expected = {
        (row, id)
        for row, value in enumerate(values)
        for id, (sign, operand) in enumerate(asked)
        if (value is None and sign == "!=" and parse("d != 1").matches({}))
        or (value is not None and TESTS[sign](Fraction(value), exact(operand)))
    }
    array = pa.array(values, kind)
    assert pairs(index, pa.record_batch({"d": array})) == expected
    padded = pa.concat_arrays([pa.nulls(3, kind), array]).slice(3)
    assert pairs(index, pa.record_batch({"d": padded})) == expected


@given(columns())
def test_decimals_in_structs_and_lists_compare_alike(given: tuple[pa.DataType, list[Decimal | None]]) -> None:
    kind, values = given
    array = pa.array(values, kind)
    below = pa.StructArray.from_arrays([array], names=["d"])
    listed = pa.ListArray.from_arrays(pa.array(range(len(values) + 1), pa.int32()), array)
    batch = pa.RecordBatch.from_arrays([array, below, listed], names=["d", "s", "l"])
    asked = {*NEAR, *map(near, values)}
    flat, below_a_field, in_a_list = (
        pairs(Index((repr(operand), parse(text.format(operand))) for operand in asked), batch)
        for text in ("d <= {!r}", "s.d <= {!r}", "ANY l <= {!r}")
    )
    assert below_a_field == flat
    assert in_a_list == flat


def pairs(index: Index[Any], batch: pa.RecordBatch) -> set[tuple[int, Any]]:
    found = index.match_batch(batch)
    return {*zip(found["event"].to_pylist(), found["id"].to_pylist(), strict=True)}


@given(columns())
def test_short_columns_need_no_python_for_each_row(given: tuple[pa.DataType, list[Decimal | None]]) -> None:
    kind, values = given
    found, unsure = decimal_keys.numbers(pa.array(values, kind))
    for row, (value, got) in enumerate(zip(values, found.to_pylist(), strict=True)):
        if unsure is not None and unsure[row]:
            assert value is not None
            assert type(number(value)) is Between or abs(value) > 2**53
        else:
            assert got == (None if value is None else number(value))


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("d BETWEEN -1.4 AND 0.7", "0.70", True),
        ("d BETWEEN -1.4 AND 0.7", "0.7000000000000000001", False),
        ("d BETWEEN -1.4 AND 0.7", "-1.40", True),
        ("d BETWEEN -1.4 AND 0.7", "-1.4000000000000000001", False),
        ("d IN (0.1, 0.2)", "0.2", True),
        ("d IN (0.1, 0.2)", "0.20000000000000000001", False),
        ("d NOT IN (0.1, 0.2)", "0.20000000000000000001", True),
        ("d = 9007199254740993", "9007199254740993", True),
        ("d = 9007199254740992", "9007199254740993", False),
        ("d * 10 = 7", "0.70", True),
    ],
)
def test_a_filter_on_a_decimal(text: str, value: str, holds: bool) -> None:
    wanted: Filter = parse(text)
    for kind in (pa.decimal128(38, 20), pa.decimal256(60, 25)):
        batch = pa.record_batch({"d": pa.array([Decimal(value)], kind)})
        assert bool(pairs(Index([(1, wanted)]), batch)) is holds


def test_the_order_of_numbers_between_floats_is_total() -> None:
    near = [Decimal("0.7") + Decimal(n) / 10**19 for n in range(-3, 4)]
    numbers = [number(value) for value in near]
    assert numbers[3] == 0.7
    assert sorted(numbers) == numbers
    assert len({*numbers}) == len(numbers)
    assert all(
        (a < b) == (x < y) for a, x in zip(numbers, near, strict=True) for b, y in zip(numbers, near, strict=True)
    )
