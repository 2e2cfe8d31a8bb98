"""CESQL as filters: every lowering means what the evaluator says, and as much as possible of it is value sets."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.filters.languages.cesql.test_translation import expressions

from fieldfare.events.event import Event
from fieldfare.events.values import MISSING, Interval
from fieldfare.filters import EVERYTHING, Filter
from fieldfare.filters import parse as native
from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.filters.expressions import UNCERTAIN
from fieldfare.filters.languages.cesql import translation
from fieldfare.filters.languages.cesql.evaluation import evaluate, find_function
from fieldfare.filters.languages.cesql.expression import Cesql
from fieldfare.filters.languages.cesql.syntax import (
    Attribute,
    Binary,
    Call,
    Exists,
    Expr,
    In,
    Like,
    Literal,
    Logic,
    Not,
    children,
    parse,
    to_text,
)

TRUE_BYTES = b"\xb6\xbb\x9e"  # in base64: true
DAY = datetime(2026, 1, 1, tzinfo=UTC)

# --- strategies -------------------------------------------------------------------------------------------------------

TEXTS = [
    "a", "ab", "", "5", "05", "+5", "-5", "0", "1", "1.0", "5.5", "true", "TRUE", "false", "False", "true1", "MTIz",
    "2147483647", "2147483648", "9223372036854775808", "1e+300", "inf", "-inf", "nan", "NaN", "2026-01-01T00:00:00Z",
    "2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00.50Z", "2026-01-01 00:00:00Z", "é",
]  # fmt: skip
PATTERNS = [
    *TEXTS,
    "%",
    "_",
    "",
    "%%",
    "a%",
    "%a",
    "%a%",
    "5%",
    "%5",
    "%.%",
    "t%e",
    "2026%",
    "%Z",
    "M%",
    "%=",
    "1_0",
    "é%",
]
names = st.sampled_from(["a", "b", "data"])
constants = st.one_of(
    st.sampled_from(TEXTS), st.booleans(), st.sampled_from([0, 1, 5, -5, 123, 2147483647, -2147483648])
).map(Literal)
attributes = st.builds(Attribute, names)
operands = st.one_of(
    attributes,
    attributes,
    constants,
    st.builds(Call, st.sampled_from(["INT", "BOOL", "STRING", "LENGTH", "UPPER"]), st.tuples(attributes)),
    st.builds(Binary, st.sampled_from(["+", "/"]), attributes, constants | attributes),
    st.builds(Exists, names),
)
conditions: st.SearchStrategy[Expr] = st.recursive(
    st.one_of(
        operands,
        st.builds(Exists, names),
        st.builds(Binary, st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), operands, operands),
        st.builds(Binary, st.sampled_from(["=", "!="]), attributes, constants),
        st.builds(Like, operands, st.sampled_from(PATTERNS), st.booleans()),
        st.builds(In, operands, st.lists(constants | operands, min_size=1, max_size=3).map(tuple), st.booleans()),
    ),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(Logic, st.sampled_from(["AND", "OR", "XOR"]), st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(Binary, st.sampled_from(["=", "!="]), inner, constants | inner),
    ),
    max_leaves=6,
)
values = st.one_of(
    st.sampled_from(TEXTS),
    st.booleans(),
    st.sampled_from([0, 1, 5, -5, 123, 2**31 - 1, 2**31, 2**63 - 1, -(2**63)]),
    st.sampled_from(
        [0.0, -0.0, 1.0, 5.0, 5.5, 2.0**31, 2.0**63, 1e16, 1e300, float("inf"), float("-inf"), float("nan")]
    ),
    st.sampled_from([b"", b"123", TRUE_BYTES, b"\0"]),
    st.sampled_from([DAY, DAY.replace(microsecond=500000)]),
    st.sampled_from([None, (), ("a",), {"a": "b"}]),
    st.floats(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(max_size=3),
    st.binary(max_size=4),
)
events = st.dictionaries(st.sampled_from(["a", "b", "c", "data"]), values, max_size=3).map(Event)


def known(expr: Expr) -> bool:
    found = not isinstance(expr, Call) or find_function(expr.function, len(expr.args)) is not None
    return found and all(map(known, children(expr)))


def agrees(expr: Expr, event: Event) -> None:
    lowered = translation.translate(expr)
    assert lowered.matches(event) == evaluate(expr, event).passes, lowered
    if lowered.is_empty:
        with pytest.raises(FilterSyntaxError):
            translation.parse(to_text(expr))
    else:
        assert translation.parse(to_text(expr)) == lowered


# --- exactness --------------------------------------------------------------------------------------------------------


@given(conditions, events)
@example(parse("a = 'true'"), Event({"a": TRUE_BYTES}))
@example(parse("a NOT IN ('b', 5)"), Event({"a": 7}))
@example(parse("NOT (a = '5')"), Event({"a": 5.0}))
@example(parse("a = 'nan'"), Event({"a": float("nan")}))
@example(parse("a LIKE 'nan%'"), Event({"a": float("nan")}))
@example(parse("NOT a"), Event({"a": 0}))
@example(parse("a AND TRUE"), Event({"a": -0.5}))
def test_a_filter_matches_what_the_evaluator_passes(expr: Expr, event: Event) -> None:
    agrees(expr, event)


@given(expressions.filter(known), events)
def test_the_same_for_expressions_of_every_shape(expr: Expr, event: Event) -> None:
    agrees(expr, event)


@given(conditions)
def test_the_native_language_reads_what_is_written(expr: Expr) -> None:
    lowered = translation.translate(expr)
    if not lowered.is_empty:
        assert native(str(lowered)) == lowered


@given(
    conditions, st.dictionaries(st.sampled_from(["a", "b"]), values, max_size=2), st.integers(-6, 6), st.integers(0, 3)
)
def test_an_interval_stands_for_its_points(expr: Expr, fields: dict[str, object], low: int, size: int) -> None:
    lowered = translation.translate(expr)
    points = [lowered.matches(Event({**fields, "a": low + step})) for step in range(size + 1)]
    whole = Event({**fields, "a": Interval(low, low + size)})
    if any(points):
        assert lowered.matches(whole)
    if lowered.matches(whole, mode="covers"):
        assert all(points)


# --- what becomes value sets ------------------------------------------------------------------------------------------

SEEN = "EXISTS {0} AND NOT ({0} IS NULL OR {0} IS LIST OR {0} IS OBJECT)"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("TRUE", "TRUE"),
        ("EXISTS x", SEEN.format("x")),
        ("NOT EXISTS x", "x IS MISSING OR x IS NULL OR x IS LIST OR x IS OBJECT"),
        ("NOT EXISTS data", "TRUE"),
        ("x", "x = TRUE"),
        ("x = 'com.sale'", "x = 'com.sale'"),
        ("'com.sale' = x", "x = 'com.sale'"),
        ("x = CONCAT('com', '.', 'sale')", "x = 'com.sale'"),
        ("x = '5'", "x IN (5, '5')"),
        ("x = '05'", "x = '05'"),
        ("x = '5.5'", "x IN (5.5, '5.5')"),
        ("x = '5.0'", "x = '5.0'"),
        ("x = 'false'", "x IN (FALSE, 'false')"),
        ("x = '2026-01-01T00:00:00Z'", "x IN ('2026-01-01T00:00:00Z', TIMESTAMP '2026-01-01T00:00:00Z')"),
        ("x = 'MTIz'", "x IN ('MTIz', X'313233')"),
        ("5 = x", "x IN (TRUE, 5, '5')"),
        ("x IN ('a.', 'b.')", "x IN ('a.', 'b.')"),
        ("x IN (1, 2)", "x IN (TRUE, 1, 2, '1', '2')"),
        ("x IN ('a.', 5)", "x IN ('a.', '5')"),  # an integer is not compared with 5: 'a.' before it is an error
        ("x != 'a.'", SEEN.format("x") + " AND NOT (x = 'a.')"),
        ("NOT (x = 'a.')", SEEN.format("x") + " AND NOT (x = 'a.')"),
        ("x LIKE 'com.%'", "x STARTS WITH 'com.'"),
        ("x LIKE '%.com'", "x ENDS WITH '.com'"),
        ("x LIKE '%a.com%'", "x CONTAINS 'a.com'"),
        ("x LIKE '5'", "x IN (5, '5')"),
        ("x LIKE '%'", SEEN.format("x")),
        ("x NOT LIKE 'com.%'", SEEN.format("x") + " AND NOT (x STARTS WITH 'com.')"),
        ("x = 'a.' OR x = 'b.' OR x LIKE 'c.%'", "x IN ('a.', 'b.') OR x STARTS WITH 'c.'"),
        ("x = 'a.' AND y = 'b.'", "x = 'a.' AND y = 'b.'"),
        ("x = 'a.' OR y = 'b.'", f"x = 'a.' OR (y = 'b.' AND {SEEN.format('x')})"),
        ("TRUE OR x", "TRUE"),
        ("hop < 3", "CESQL('INT(hop)') < 3"),
        ("INT(hop) < '3'", "CESQL('INT(hop)') < 3"),
        ("3 > hop", "CESQL('INT(hop)') < 3"),
        ("hop = 3", "CESQL('INT(hop)') = 3"),
        ("NOT (hop < 3)", "CESQL('INT(hop)') >= 3"),
        ("hop + 1 < ttl", "CESQL('hop + 1 < ttl')"),
        ("hop + 1 < 3", "CESQL('hop + 1') < 3"),
        ("LENGTH(x) IN (1, 2, 'a')", "CESQL('LENGTH(x)') IN (1, 2)"),
        ("LOWER(x) = 'it\\'s'", "CESQL('LOWER(x)') = 'it''s'"),
        ("LOWER(x) LIKE 'a%'", "CESQL('LOWER(x)') STARTS WITH 'a'"),
        ("x = TRUE", "CESQL('BOOL(x)')"),
        ("x AND y", "CESQL('BOOL(x)') AND CESQL('BOOL(y)')"),
        ("NOT x", "CESQL('NOT x')"),
        ("(x = 'a.') = TRUE", "x = 'a.'"),
        ("X = 'a.'", "x = 'a.'"),
    ],
)
def test_lowered(text: str, same: str) -> None:
    assert translation.parse(text) == native(same)


@pytest.mark.parametrize(
    ("text", "same"),
    [  # in base64 may be that text, in numbers and timestamps not
        ("x LIKE '%ab%'", "x CONTAINS 'ab' OR CESQL('STRING(x)') CONTAINS 'ab'"),
        ("x LIKE '2026%'", "x STARTS WITH '2026' OR CESQL('STRING(x)') STARTS WITH '2026'"),
        ("x LIKE 'a%' OR x LIKE 'ab%'", "x STARTS WITH 'a' OR CESQL('STRING(x)') STARTS WITH 'a'"),
        ("x NOT IN ('b', 'c')", "x IN ('a') OR x IS STRING AND NOT x IN ('b', 'c') OR x IS TIMESTAMP OR x IS BYTES OR"
         " CESQL('x IN (''b'', ''c'')') = FALSE"),
        ("x LIKE 'a%' AND y LIKE 'b%'", "x STARTS WITH 'a' AND y STARTS WITH 'b' OR"
         " CESQL('STRING(x)') STARTS WITH 'a' AND CESQL('STRING(y)') STARTS WITH 'b'"),
    ],
)  # fmt: skip
def test_sets_for_all_but_odd_kinds_of_values(text: str, same: str) -> None:
    assert translation.parse(text) == native(same)


def test_sets_stay_when_a_pattern_may_be_that_of_bytes() -> None:
    lowered = translation.parse("source LIKE '%cloudevents%'")
    assert lowered.covers(native("source CONTAINS 'cloudevents.io'"))
    assert lowered.covers(translation.parse("source LIKE '%cloudevents%a%'"))
    assert lowered.covers(translation.parse("source = 'https://cloudevents.io'"))


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("hop < 5", "hop < 3"),
        ("hop != 5", "INT(hop) = 3"),
        ("type LIKE 'com.%'", "type = 'com.sale' AND hop < 3"),
        ("EXISTS type", "type LIKE '%.sale'"),
        ("NOT (type = 'b.')", "type = 'a.'"),
        ("EXISTS type AND (hop + 1 > 3)", "hop + 1 > 5 AND type != 'b.'"),
    ],
)
def test_covering(wide: str, narrow: str) -> None:
    assert translation.parse(wide).covers(translation.parse(narrow))
    assert not translation.parse(narrow).covers(translation.parse(wide))


def test_what_is_too_complex_is_computed_in_one_piece() -> None:
    text = " AND ".join(f"(a{i} = 'x.' OR b{i} = 'y.')" for i in range(9))
    lowered = translation.parse(text)
    assert lowered == native(f"CESQL('{text.replace(chr(39), chr(39) * 2)}')")
    assert lowered.matches({name + str(i): value for i in range(9) for name, value in (("a", "z"), ("b", "y."))})
    assert not lowered.matches({"a0": "x."})
    assert translation.parse(" XOR ".join(f"a{i} = 'x.'" for i in range(12))).fields() == {f"a{i}" for i in range(12)}


def test_long_is_not_complex() -> None:
    count = 2000
    listed = translation.parse(f"id IN ({', '.join(f'{chr(39)}x.{i}{chr(39)}' for i in range(count))})")
    assert len(listed.branches) == 1
    assert translation.parse(" OR ".join(f"id = 'x.{i}'" for i in range(count))) == listed


# --- the dimension ----------------------------------------------------------------------------------------------------


def test_the_dimension() -> None:
    dimension = Cesql(parse("hop + 1 < ttl AND EXISTS data OR hop"))
    assert list(dimension.fields()) == ["hop", "ttl"]
    assert dimension.text == "CESQL('hop + 1 < ttl AND EXISTS data OR hop')"
    assert Cesql(parse("x = 'a'")).text == "CESQL('x = ''a''')"
    assert Cesql(parse("hop<3")) == Cesql(parse("HOP  <  3"))


@pytest.mark.parametrize(
    ("text", "event", "value"),
    [
        ("hop + 1", {"hop": 4}, 5),
        ("hop + 1", {"hop": "x"}, MISSING),
        ("hop < 3", {"hop": 4}, False),
        ("hop < 3", {}, MISSING),
        ("UPPER(x)", {"x": "a"}, "A"),
        ("hop < 3", {"hop": Interval(1, 2)}, UNCERTAIN),
        ("hop < 3", {"hop": 1, "ttl": Interval(1, 2)}, True),
        ("EXISTS data", {"data": Interval(1, 2)}, False),
    ],
)
def test_its_value(text: str, event: dict[str, object], value: object) -> None:
    assert Cesql(parse(text)).evaluate(event) is value or Cesql(parse(text)).evaluate(event) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("CESQL('hop <') = 1", "CESQL, line 1, column 6: expected a value, found the end"),
        ("CESQL('NO_SUCH(x)')", "CESQL, line 1, column 1: there is no function NO_SUCH of 1 arguments"),
        ("CESQL(x)", "CESQL takes one string, such as CESQL('hop < 3')"),
        ("CESQL('x', 'y')", "CESQL takes one string, such as CESQL('hop < 3')"),
        ("CESQL('1 / 0') = 1", "CESQL('1 / 0') has no value"),
    ],
)
def test_errors_in_the_native_language(text: str, problem: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        native(text)
    assert caught.value.problem == problem


def test_constants_in_the_native_language() -> None:
    assert native("CESQL('1 < 2')") == EVERYTHING
    assert native("cesql('hop < 3') AND price > 5").matches({"hop": "2", "price": 5.5})


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("a =", 4, "expected a value, found the end"),
        ("1 = 2", 1, "nothing can match 1 = 2"),
        ("EXISTS data", 1, "nothing can match EXISTS data"),
        ("data", 1, "nothing can match data"),
        ("x + 1", 1, "expected a condition, found an integer"),
        ("'true'", 1, "expected a condition, found a string"),
        ("x < 'abc'", 1, "nothing can match x < 'abc'"),
        ("NOT (x + 1)", 1, "nothing can match NOT (x + 1)"),
        ("id = 'x' AND FALSE", 14, "nothing can match FALSE"),
        ("a = '1' AND b = '2' AND a = '3'", 25, "nothing can match: a = '3' contradicts a = '1'"),
        ("a LIKE 'x%' AND a = 'b'", 17, "nothing can match: a = 'b' contradicts a LIKE 'x%'"),
        ("a = '1' AND NO_SUCH(b, 'c')", 13, "there is no function NO_SUCH of 2 arguments"),
        ("LENGTH(a, b) = 1", 1, "there is no function LENGTH of 2 arguments"),
    ],
)
def test_refused(text: str, column: int, problem: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        translation.parse(text)
    assert (caught.value.column, caught.value.problem) == (column, problem)


def test_an_event_with_nested_data_is_matched_by_its_attributes() -> None:
    wanted: Filter = translation.parse("type = 'sale.' AND NOT EXISTS data")
    assert wanted.matches({"type": "sale.", "data": {"type": "other"}})
