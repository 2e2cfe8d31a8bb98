"""CESQL beyond its conformance kit: spans, errors, what an event looks like, and that nothing makes it raise."""

from __future__ import annotations

import contextlib
import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum, StrEnum

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fieldfare.events.event import Event
from fieldfare.events.values import Interval
from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.filters.languages.cesql.evaluation import Error, Outcome, evaluate
from fieldfare.filters.languages.cesql.syntax import (
    INT32_MAX,
    INT32_MIN,
    MAX_DEPTH,
    Attribute,
    Binary,
    Call,
    Exists,
    Expr,
    In,
    Like,
    Literal,
    Logic,
    Negate,
    Not,
    children,
    like_pattern,
    parse,
    read_integer,
    to_text,
)

KEYWORDS = {"and", "or", "xor", "not", "exists", "true", "false", "like", "in"}
CASTS = ["INT", "BOOL", "STRING"]
FUNCTIONS = [*CASTS, "ABS", "LENGTH", "LOWER", "TRIM", "CONCAT", "CONCAT_WS", "LEFT", "RIGHT", "SUBSTRING", "NO_SUCH"]
OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"]

a, b, c, d = (Attribute(name) for name in "abcd")


# --- strategies -------------------------------------------------------------------------------------------------------


def writable(text: str) -> bool:
    try:
        to_text(Literal(text))
    except ValueError:
        return False
    return True


strings = st.one_of(
    st.text(alphabet="ab%_\\'\" \n", max_size=6),
    st.text(max_size=6),
    st.sampled_from(["true", "FALSE", "1", "-7", "+2147483648", ""]),
).filter(writable)
integers = st.one_of(st.integers(-3, 3), st.integers(INT32_MIN, INT32_MAX), st.sampled_from([INT32_MIN, INT32_MAX]))
names = st.from_regex(r"[a-c]?[0-9]?[a-d]|(not|in|true)[a-z]", fullmatch=True).filter(lambda name: name not in KEYWORDS)
leaves: st.SearchStrategy[Expr] = st.one_of(
    st.builds(Literal, st.one_of(st.booleans(), integers, strings)),
    st.builds(Attribute, names),
    st.builds(Exists, names),
)


def grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    def some(least: int, most: int) -> st.SearchStrategy[tuple[Expr, ...]]:
        return st.lists(inner, min_size=least, max_size=most).map(tuple)

    return st.one_of(
        st.builds(Not, inner),
        st.builds(Negate, inner),
        st.builds(Logic, st.sampled_from(["AND", "OR", "XOR"]), some(2, 4)),
        st.builds(Binary, st.sampled_from(OPERATORS), inner, inner),
        st.builds(Like, inner, strings, st.booleans()),
        st.builds(In, inner, some(1, 3), st.booleans()),
        st.builds(Call, st.sampled_from(FUNCTIONS), some(0, 3)),
    )


expressions = st.recursive(leaves, grown, max_leaves=12)
values = st.one_of(
    st.none(),
    st.booleans(),
    integers,
    st.integers(),
    st.floats(),
    strings,
    st.text(),
    st.binary(),
    st.datetimes(timezones=st.one_of(st.none(), st.just(UTC), st.just(timezone(timedelta(hours=14))))),
    st.lists(st.integers()),
    st.dictionaries(st.text(), st.integers()),
    st.just(Interval(1, 2)),
    st.just(object()),
)
attributes = st.dictionaries(names, values)


def outcome(text: str, **event: object) -> Outcome:
    return evaluate(parse(text), event)


def kind(text: str, **event: object) -> str | None:
    error = outcome(text, **event).error
    return error.kind if error else None


# --- syntax -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expr"),
    [
        ("a AND b AND c", Logic("AND", (a, b, c))),
        ("a AND b OR c", Logic("OR", (Logic("AND", (a, b)), c))),
        ("a OR b AND c", Logic("AND", (Logic("OR", (a, b)), c))),  # one level, from left to right
        ("a OR (b AND c)", Logic("OR", (a, Logic("AND", (b, c))))),
        ("(a AND b) AND c", Logic("AND", (Logic("AND", (a, b)), c))),
        ("NOT a = b", Binary("=", Not(a), b)),
        ("NOT a LIKE 'x'", Like(Not(a), "x")),
        ("a not\n like 'x'", Like(a, "x", True)),
        ("a Not In (b, (c))", In(a, (b, c), True)),
        ("NOT EXISTS a", Not(Exists("a"))),
        ("a <> b", Binary("!=", a, b)),
        ("a = b = c", Binary("=", Binary("=", a, b), c)),
        ("a - b - c", Binary("-", Binary("-", a, b), c)),
        ("a + b * c LIKE 'x'", Binary("+", a, Binary("*", b, Like(c, "x")))),
        ("4 -1", Binary("-", Literal(4), Literal(1))),
        ("4-1", Binary("-", Literal(4), Literal(1))),
        ("4 - -1", Binary("-", Literal(4), Literal(-1))),
        ("+4", Literal(4)),
        ("-4", Literal(-4)),
        ("- 4", Negate(Literal(4))),
        ("--4", Negate(Literal(-4))),
        ("-2147483648", Literal(INT32_MIN)),
        ("0000000000000000000007", Literal(7)),
        ("7up", Attribute("7up")),
        ("android", Attribute("android")),
        ("Source", Attribute("source")),
        ("left ('x', 1)", Call("LEFT", (Literal("x"), Literal(1)))),
        ("left", Attribute("left")),
        (r"'it\'s'", Literal("it's")),
        (r"'a\\b\"c\d'", Literal(r"a\\b\"c\d")),  # only the delimiter is escaped
        ("'two\nlines'", Literal("two\nlines")),
    ],
)
def test_parse(text: str, expr: Expr) -> None:
    assert parse(text) == expr
    assert parse(to_text(expr)) == expr


def test_literals_are_equal_only_within_their_type() -> None:
    assert Literal(True) != Literal(1)
    assert len({Literal(True), Literal(1), Literal("1"), Literal(1, start=3, end=4)}) == 3


def test_spans_leave_out_the_parentheses_around_a_node() -> None:
    text = " ((a + 1) * 2) LIKE 'x' AND exists b"
    expr = parse(text)

    def spans(expr: Expr) -> list[str]:
        return [text[expr.start : expr.end], *(span for child in children(expr) for span in spans(child))]

    assert spans(expr) == [
        "((a + 1) * 2) LIKE 'x' AND exists b",
        "((a + 1) * 2) LIKE 'x'",
        "(a + 1) * 2",
        "a + 1",
        "a",
        "1",
        "2",
        "exists b",
    ]


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "expected a value, found the end"),
        ("price < AND", 9, "expected a value, found 'AND'"),
        ("a AND  ", 6, "expected a value, found the end"),
        ("a b", 3, "expected an operator or the end, found 'b'"),
        ("a_b = 1", 2, "expected an operator or the end, found '_'"),
        ("a = $", 5, "expected a value, found '$'"),
        ("(a", 3, "expected ')', found the end"),
        ("foo(", 5, "expected a value or ')', found the end"),
        ("foo(1,)", 7, "expected a value, found ')'"),
        ("a LIKE 1", 8, "expected a pattern in quotes, found '1'"),
        ("a IN 1", 6, "expected a list in parentheses, found '1'"),
        ("a IN ()", 7, "expected a value, found ')'"),
        ("EXISTS 'a'", 8, "expected the name of an attribute, found \"'a'\""),
        ("EXISTS in", 8, "expected the name of an attribute, found 'in'"),
        ("a == 1", 3, "write = instead of =="),
        ("a = 1 && b", 7, "write AND instead of &&"),
        ("a = 'b", 5, "the string that starts here has no closing quote"),
        ("a = 2147483648", 5, "the number does not fit in 32 bits"),
        ("a = - 2147483648", 7, "the number does not fit in 32 bits"),
        ("'it''s'", 5, "expected an operator or the end, found \"'s'\""),
        ("a \N{KELVIN SIGN} b", 3, "expected an operator or the end, found '\N{KELVIN SIGN}'"),
    ],
)
def test_syntax_errors_say_where_and_what(text: str, column: int, problem: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column, caught.value.problem) == (1, column, problem)


def test_the_message_shows_the_place() -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse("type = 'x' AND\n\tprice < AND")
    error = caught.value
    assert str(error) == (
        "line 2, column 10: expected a value, found 'AND'\n"
        "   price < AND\n"
        "           ^"
    )  # fmt: skip
    assert error.text[error.position :] == "AND"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@given(st.text(), st.integers(0, 300), st.integers(0, 300))
def test_the_caret_stands_under_the_place_also_in_a_long_line(text: str, before: int, after: int) -> None:
    text = text.replace("!", "")
    error = FilterSyntaxError(text + " " * before + "!" + "x" * after, len(text) + before, "wrong")
    _, line, caret = str(error).rsplit("\n", 2)
    assert line[caret.index("^")] == "!"
    assert len(line) <= 80


@given(st.text(alphabet="ab1 '\"\\()=<>!+-*/%,_", max_size=30) | st.text())
def test_any_text_parses_or_is_a_syntax_error(text: str) -> None:
    error = None
    try:
        parse(text)
    except FilterSyntaxError as caught:
        error = caught
    assert error is None or (0 <= error.position <= len(text) and str(error).endswith("^"))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 2000,
        "f(" * 2000,
        "NOT " * 2000 + "a",
        "-" * 2000 + "a",
        "(NOT " * 2000 + "a" + ")" * 2000,
        "1" + " + 1" * 2000,
        "a" + " LIKE 'x'" * 2000,
        "a" + " = a" * 2000,
        "a" + " AND a OR a" * 2000,
        "9" * 100_000,
    ],
    ids=lambda text: text[:9],
)
def test_too_deep_is_a_syntax_error(text: str) -> None:
    with pytest.raises(FilterSyntaxError):
        parse(text)


@pytest.mark.parametrize("text", ["NOT ", "-", "f(", "(a AND ", "(a AND b OR c XOR ", "1 IN (2, "])
def test_as_deep_as_allowed_is_no_trouble(text: str) -> None:
    levels = MAX_DEPTH // 3 if "OR" in text else MAX_DEPTH - 1
    expr = parse(text * levels + "a" + ")" * (text.count("(") * levels))
    evaluate(expr, {"a": True})
    repr(expr)
    assert hash(expr) == hash(copy.deepcopy(expr))
    assert pickle.loads(pickle.dumps(expr)) == expr == parse(to_text(expr))


def test_long_is_not_deep() -> None:
    count = 5000
    assert outcome(" OR ".join(f"id = 'x{i}'" for i in range(count)), id=f"x{count - 1}").passes
    items = ", ".join(f"'x{i}'" for i in range(count))
    assert outcome(f"id IN ({items})", id=f"x{count - 1}").passes
    assert outcome("(" * count + "TRUE" + ")" * count).passes
    assert outcome(f"LENGTH('{'x' * 1_000_000}') = 1000000").passes
    assert outcome("0" * 100_000 + "1").value == 1


# --- rendering --------------------------------------------------------------------------------------------------------


@given(expressions)
@example(Negate(Literal(4)))
@example(Negate(Attribute("7up")))
@example(Logic("AND", (Logic("AND", (a, b)), Logic("OR", (c, d)))))
def test_rendered_and_read_again(expr: Expr) -> None:
    assert parse(to_text(expr)) == expr


@given(expressions)
def test_no_parentheses_are_needless(expr: Expr) -> None:
    text = to_text(expr)
    for start, char in enumerate(text):
        if char != "(":
            continue
        for end in range(start, len(text)):
            if text[end] != ")":
                continue
            without = text[:start] + " " + text[start + 1 : end] + " " + text[end + 1 :]
            with contextlib.suppress(FilterSyntaxError):
                assert parse(without) != expr


@pytest.mark.parametrize("value", ["\\", "a\\\\\\", "\\'\\\""])
def test_some_strings_cannot_be_written(value: str) -> None:
    with pytest.raises(ValueError, match="no way to write"):
        to_text(Literal(value))


# --- evaluation -------------------------------------------------------------------------------------------------------


@given(expressions, attributes)
def test_evaluation_never_raises(expr: Expr, event: dict[str, object]) -> None:
    result = evaluate(expr, event)
    assert type(result.value) in (bool, int, str)
    assert not isinstance(result.value, int) or INT32_MIN <= result.value <= INT32_MAX
    assert result == evaluate(parse(to_text(expr)), event)


@pytest.mark.parametrize(
    ("text", "value", "error"),
    [
        ("2147483647 + 1", 0, "math"),
        ("-2147483648 - 1", 0, "math"),
        ("65536 * 65536", 0, "math"),
        ("-2147483648 / -1", 0, "math"),
        ("-(-2147483648)", 0, "math"),
        ("-7 / 2", -3, None),
        ("7 / -2", -3, None),
        ("-7 % 2", -1, None),
        ("7 % -2", 1, None),
        ("INT('+7')", 7, None),
        ("INT('007')", 7, None),
        ("INT(' 7')", 0, "cast"),
        ("INT('1_0')", 0, "cast"),
        ("INT('٣')", 0, "cast"),
        ("INT('2147483648')", 0, "cast"),
        ("INT('')", 0, "cast"),
        ("1 AND TRUE", True, None),  # an integer is a boolean
        ("1 = TRUE", True, None),
        ("2 = TRUE", True, None),
        ("TRUE = 2", False, None),
        ("NOT 0", True, "cast"),  # but not for NOT, as the kit wants it
        ("NOT 'abc'", True, "cast"),
        ("NOT BOOL(10)", False, None),
        ("'abc' = 1", False, "cast"),
        ("'abc' != 1", False, "cast"),
        ("1 != 'abc'", True, None),
        ("'x' < 1", False, "cast"),
        ("1 IN ('x', 1)", False, "cast"),
        ("1 NOT IN ('x', 1)", False, "cast"),
        ("1 IN (1, 'x', missing)", True, None),  # stops at the first that is equal
        ("'true' NOT IN (TRUE)", False, None),
        ("missing NOT LIKE '%'", False, "missingAttribute"),
        ("missing NOT IN (1)", False, "missingAttribute"),
        ("missing = 1 OR TRUE", False, "missingAttribute"),
        ("TRUE OR missing = 1", True, None),
        ("FALSE AND missing = 1", False, None),
        ("FALSE XOR missing", False, "missingAttribute"),
        ("TRUE XOR TRUE XOR TRUE", True, None),
        ("(1 / 0) IN (0)", False, "math"),
        ("CONCAT('a', missing)", "", "missingAttribute"),
        ("LENGTH(missing)", 0, "missingAttribute"),
        ("CONCAT('x', LEFT('abc', -1))", "", "functionEvaluation"),
        ("NOT (NOT 10)", False, "cast"),  # a failed operand, so the zero value
        ("ABS(missing) = 0", False, "missingAttribute"),
        ("NO_SUCH(missing)", False, "missingFunction"),
        ("LENGTH('a', 'b')", False, "missingFunction"),
        ("RIGHT('abc', 0)", "", None),
        ("LEFT('abc', 'x')", "", "cast"),
        ("SUBSTRING('abc', 1, -1)", "", "functionEvaluation"),
        ("SUBSTRING('abc', 3, 2147483647)", "c", None),
        ("SUBSTRING('abc', 4)", "", "functionEvaluation"),
        ("SUBSTRING('abc', -3, 1)", "a", None),
        ("TRIM('\u3000\x1f x \x1f\xa0')", "\x1f x \x1f", None),  # control characters stay
        ("CONCAT_WS('-', 1, TRUE, 'x')", "1-true-x", None),
        ("LENGTH('😀')", 1, None),
    ],
)
def test_evaluate(text: str, value: bool | int | str, error: str | None) -> None:
    result = outcome(text)
    assert (type(result.value), result.value) == (type(value), value)
    assert (result.error and result.error.kind) == error


@pytest.mark.parametrize(
    ("text", "pattern", "matches"),
    [
        ("a\nb", "a_b", True),
        ("a\n", "a", False),
        ("A", "a", False),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
        (r"\%", r"\\%", True),  # a backslash, then an escaped percent sign
        (r"\x", r"\\%", False),
        ("\\", "\\", True),
        ("", "%", True),
        ("ab", "%ab%ab%", False),
        ("aba", "ab%ba", False),
    ],
)
def test_like(text: str, pattern: str, matches: bool) -> None:
    assert like_pattern(pattern).matches(text) is matches
    assert evaluate(Like(Literal(text), pattern), {}) == Outcome(matches)
    assert evaluate(Like(Literal(text), pattern, True), {}) == Outcome(not matches)


def test_like_does_not_backtrack() -> None:
    assert not outcome(f"a LIKE '{'%a' * 50}%b'", a="a" * 10_000).passes


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ("x", "x"),
        (True, True),
        (7, 7),
        (INT32_MIN, INT32_MIN),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (5.0, 5),
        (-0.0, 0),
        (5.5, "5.5"),
        (2**31, "2147483648"),
        (float(2**31), "2147483648"),
        (1e300, "1e+300"),
        (float("-inf"), "-inf"),
        (float("nan"), "nan"),
        (b"\x00\xff", "AP8="),
        (datetime(2018, 4, 26, 14, 48, 9, tzinfo=timezone(timedelta(hours=2))), "2018-04-26T12:48:09Z"),
    ],
)
def test_attributes_as_cesql_sees_them(value: object, seen: object) -> None:
    result = outcome("x", x=value)
    assert (type(result.value), result) == (type(seen), Outcome(seen))  # type: ignore[arg-type]
    assert outcome("EXISTS X", x=value) == Outcome(True)


@pytest.mark.parametrize(
    "value",
    [
        None,
        2**63,
        (1,),
        {"y": 1},
        Interval(1, 2),
        datetime(2018, 4, 26),  # noqa: DTZ001
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
    ],
    ids=str,
)
def test_values_no_attribute_can_have_are_missing(value: object) -> None:
    assert outcome("x", x=value) == Outcome(False, Error("missingAttribute", "the event has no attribute 'x'"))
    assert outcome("EXISTS x", x=value) == Outcome(False)


def test_data_is_no_attribute() -> None:
    assert kind("data = 'x'", data="x") == "missingAttribute"
    assert outcome("EXISTS data", data="x") == Outcome(False)


def test_an_event_is_a_mapping_of_its_attributes() -> None:
    event = Event({"type": "sale", "hop": 2, "venue": {"id": 7}})
    assert evaluate(parse("type = 'sale' AND hop < 3 AND NOT EXISTS venue"), event).passes


@given(st.text(alphabet="0123456789+- _", max_size=12))
def test_read_integer(text: str) -> None:
    try:
        number = int(text) if text.strip() == text and "_" not in text else None
    except ValueError:
        number = None
    assert read_integer(text) == (number if number is not None and INT32_MIN <= number <= INT32_MAX else None)


def test_no_text_grows_beyond_its_limit() -> None:
    """A short filter could ask for a long field thousands of times."""
    event = {"x": "a" * 100_000}
    assert evaluate(parse(f"LENGTH(CONCAT({', '.join('x' * 10)}))"), event).value == 1_000_000
    for function in ("CONCAT", "CONCAT_WS"):
        outcome = evaluate(parse(f"{function}({', '.join('x' * 12)})"), event)
        assert outcome.value == ""
        assert outcome.error is not None
        assert outcome.error.kind == "functionEvaluation"
