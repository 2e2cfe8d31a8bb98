"""The native language: what it says, what it refuses and how, and that every text it writes reads back."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filters.strategies import value_sets

from fieldfare.filters import Filter, FilterSyntaxError, parse, valueset
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.literals import KEYWORDS
from fieldfare.filters.valueset import ValueSet

EVENT = {
    "symbol": "IBM", "price": 119.5, "volume": 100, "venue": "X", "open": True, "note": None, "tags": ["a", "b"],
    "when": datetime(2026, 11, 15, 9, 30, tzinfo=UTC), "raw": b"\x01\xff", "unit price": 3, "data": {"user": {"id": 7}},
    "and": 1, "items": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 5}], "ratio": math.nan, "or.x": 2, "größe": 5,
}  # fmt: skip


@pytest.mark.parametrize("text", [
    "symbol = 'IBM'", "symbol='IBM'", "SYMBOL = 'IBM' OR symbol = 'IBM'", "price > 119 and price < 120", "price<=119.5",
    "price BETWEEN 119.5 AND 120", "price between 1e2 and 1.2E+2", "119 < price", "volume = 100.0", "volume IN (1, 100)",
    "venue NOT IN ('Y', 'Z')", "venue <> 'Y'", "symbol LIKE 'I_M'", "symbol like 'I%'", "symbol ILIKE 'ib%'", "open",
    "NOT closed", "open = TRUE", "note IS NULL", "note = NULL", "missing IS MISSING", "NOT EXISTS missing", "EXISTS note",
    "symbol STARTS WITH 'IB'", "symbol ENDS  WITH 'BM'", "symbol CONTAINS 'B'", "symbol NOT CONTAINS 'C'",
    "when = TIMESTAMP '2026-11-15T10:30:00+01:00'", "when > TIMESTAMP '2026-11-15T09:29:59.999999Z'", "raw = X'01FF'",
    '"unit price" = 3', "data.user.id = 7", "EXISTS data.user", "data IS OBJECT", "tags IS LIST", '"and" = 1', "or.x = 2",
    "ANY tags = 'a'", "ANY tags = 'b' AND ALL tags IS STRING", "ALL (tags = 'a' OR tags = 'b')", "NOT ANY tags = 'c'",
    "tags != 'a'", "items HAS (sku = 'b' AND qty > 2)", "ANY items.sku = 'a'", "NOT items HAS (sku = 'a' AND qty > 2)",
    "price > volume", "price > $volume", "price * volume > 10000", "price - volume * 2 < -volume + 20", "(price) > (1)",
    "volume % 7 = 2", "LENGTH(symbol) = 3", "length(symbol) + 1 = 4", "LOWER(symbol) LIKE 'i%'", "ratio IS NAN", "TRUE",
    "NOT (ratio > 0 OR ratio <= 0)", "ratio != 0", "price < INFINITY", "price > -INFINITY", "größe = 5", "price>119\nAND\tprice<120",
    "NOT NOT open", "volume BETWEEN price - 100 AND price", "symbol IN (venue, 'IBM')", "price IS NOT STRING",
    "-price < -119", "TRUE OR FALSE", "price = 119.5 AND (venue = 'X' OR venue = 'Y') AND NOT (venue = 'Z')",
])  # fmt: skip
def test_these_are_true(text: str) -> None:
    wanted = parse(text)
    assert wanted.matches(EVENT)
    assert parse(str(wanted)) == wanted
    assert (~wanted).matches(EVENT) is False


@pytest.mark.parametrize(("text", "problem", "column"), [
    ("price <", "expected", 8),
    ("price < AND x = 1", "expected", 9),
    ("price ~ 5", "~", 7),
    ("(price < 5", "expected", 11),
    ("x = 'abc", "quote", 5),
    ("x = 1 y = 2", "expected", 7),
    ("", "expected", 1),
    ("x < TRUE", "no order", 5),
    ("x > NULL", "no order", 5),
    ("x BETWEEN 1 AND 'a'", "one kind", 11),
    ("x LIKE 5", "needs a string", 8),
    ("x = 1e999", "the number is out of range", 5),
    ("x = " + "9" * 5000, "the number is out of range", 5),
    ("x IN (1, " + "9" * 5000 + ")", "the number is out of range", 10),
    ("x = :limit", "no value was given", 5),
    ("FOO(x) = 1", "no function FOO", 1),
    ("LENGTH() = 1", "LENGTH", 1),
    ("5", "expected a condition", 1),
    ("x = 1 AND 'abc'", "expected a condition", 11),
    ("(x = 1) + 2 > 3", "expected a value", 2),
    ("ANY (x = 1 AND y = 2)", "single field", 1),
    ("x = TIMESTAMP '2026'", "RFC 3339", 5),
    ("x = X'0g'", "hexadecimal", 5),
    ("price > 5 AND price < 3", "price < 3 contradicts price > 5", 15),
    ("a = 1 AND (b = 2 OR c = 3) AND a = 2", "a = 2 contradicts a = 1", 32),
    ("x IN (1, 2) AND x = 'a'", "contradicts", 17),
    ("NOT TRUE", "nothing can match", 1),
    ("x LIKE 'a%' AND x ENDS WITH 'b' AND x = 'ac'", "x = 'ac' contradicts x ENDS WITH 'b'", 37),
    ("1 / 0 > x", "has no value", 1),
    ("symbol == 'IBM'", "write = instead of ==", 8),
    ("price===5", "write = instead of ===", 6),
    ("a = 1 && b = 2", "write AND instead of &&", 7),
    ("a = 1 & b = 2", "write AND instead of &", 7),
    ("(a = 1 || b = 2)", "write OR instead of ||", 8),
    ("a = 'x'|b", "write OR instead of |", 8),
    ("!(a = 1)", "write NOT instead of !", 1),
    ("a = 1 AND !b", "write NOT instead of !", 11),
    ("a =< 5", "write <= instead of =<", 3),
    ("a => 5", "write >= instead of =>", 3),
    ("a ≠ 5", "write != instead of ≠", 3),
    ("a = = 5", "expected a field, a value", 5),
    ("a !> 5", "expected a comparison", 3),
    ("a <=> b", "expected a field, a value", 5),
    ("AND != 5", "found 'AND'", 1),
])  # fmt: skip
def test_errors_name_the_place(text: str, problem: str, column: int) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse(text)
    assert problem in caught.value.problem
    assert caught.value.column == column


def test_three_parts_that_only_jointly_contradict() -> None:
    with pytest.raises(FilterSyntaxError, match="nothing can match"):
        parse("x BETWEEN 1 AND 3 AND x NOT BETWEEN 1 AND 2 AND x NOT BETWEEN 2 AND 3")


@pytest.mark.parametrize("text", ["(" * 3000 + "x = 1" + ")" * 3000, "NOT " * 5000 + "x = 1", "-" * 5000 + "x = 1"])
def test_deep_nesting_is_read_or_refused_but_never_crashes(text: str) -> None:
    problem = _problem(text)
    assert problem is None or "deep" in problem.problem


def _problem(text: str) -> FilterSyntaxError | None:
    try:
        parse(text)
    except FilterSyntaxError as error:
        return error
    return None


@given(st.text("xyz ='<>()ANDORNTINLKE%0123.,$:\"", max_size=40))
def test_any_text_is_a_filter_or_a_clear_error(text: str) -> None:
    problem = _problem(text)
    assert problem is None or (str(problem) and 0 <= problem.position <= len(text))


@given(value_sets())
def test_every_set_can_be_written(values: ValueSet) -> None:
    wanted = Filter.where("x", Constraint(values))
    if not wanted.is_empty:
        assert parse(str(wanted)) == wanted


@given(st.text(min_size=1, max_size=12), st.text(max_size=12))
def test_any_name_and_any_string_can_be_written(path: str, text: str) -> None:
    wanted = Filter.where(path, Constraint(valueset.one_of([text])))
    assert parse(str(wanted)) == wanted


@given(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.binary(max_size=8),
        st.datetimes(timezones=st.just(UTC)),
    )
)
def test_any_value_can_be_written(value: int | float | bytes | datetime) -> None:
    wanted = Filter.where("x", Constraint(valueset.one_of([value])))
    assert parse(str(wanted)) == wanted
    assert wanted.matches({"x": value})


def test_parameters() -> None:
    assert parse("x = :a AND y IN (:b, :c)", a="it's", b=1, c=None) == parse("x = 'it''s' AND y IN (1, NULL)")
    with pytest.raises(FilterSyntaxError, match="not a value"):
        parse("x = :a", a=[1])


def test_the_grammar_reserves_the_words_that_the_printer_puts_in_quotes() -> None:
    grammar = (resources.files("fieldfare.filters.languages.native") / "native.lark").read_text("utf-8")
    (reserved,) = re.findall(r"^_UNRESERVED: /\(\?!\(\?:([A-Z|]+)\)", grammar, re.MULTILINE)
    assert set(reserved.split("|")) == KEYWORDS
