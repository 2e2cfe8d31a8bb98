"""Filters and events to try matchers with.

First vectors made by hand, with what must match; then random ones over a few attributes and small constants, so that
they meet often.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from hypothesis import assume
from hypothesis import strategies as st

from fieldfare.events import Event, Interval
from fieldfare.filters import Filter, FilterSyntaxError, FilterTooComplex, parse
from fieldfare.filters.constraint import Mode

# Vectors

NAN, INF, BIG = math.nan, math.inf, 2**53 + 1
MODES: tuple[Mode, Mode] = ("overlaps", "covers")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1)))
"""the same instant elsewhere"""

Tree = dict[str, object]

VECTORS: dict[str, tuple[list[Tree], list[Tree]]] = {
    # numbers: exact, and never a bool or a string
    "a = 1": ([{"a": 1}, {"a": 1.0}, {"a": 1, "z": None}], [{}, {"a": 2}, {"a": True}, {"a": "1"}, {"a": [1]}, {"a": None}, {"A": 1}]),
    "a = 0": ([{"a": 0}, {"a": -0.0}], [{"a": False}, {"a": ""}, {"a": 5e-324}]),
    "a < 10": ([{"a": 9.999}, {"a": -INF}, {"a": -(2**63)}], [{"a": 10}, {"a": NAN}, {"a": "1"}, {"a": True}, {}]),
    "a <= 10": ([{"a": 10}, {"a": 10.0}], [{"a": 10.000001}]),
    "a > 10": ([{"a": 11}, {"a": INF}, {"a": 1e300}], [{"a": 10}, {"a": "11"}, {"a": b"11"}]),
    "a >= 10": ([{"a": 10}], [{"a": 9}, {"a": NAN}]),
    "a BETWEEN 1 AND 3": ([{"a": 1}, {"a": 2.5}, {"a": 3}], [{"a": 0.99}, {"a": 3.01}, {"a": NAN}, {}]),
    "a NOT BETWEEN 1 AND 3": ([{"a": 0}, {"a": "2"}, {"a": None}, {"a": NAN}, {"a": [2]}], [{"a": 2}, {}]),
    "NOT (a BETWEEN 1 AND 3)": ([{"a": 0}, {}], [{"a": 2}]),
    "a > 1 AND a < 3 AND a != 2": ([{"a": 1.5}, {"a": 2.5}], [{"a": 2}, {"a": 1}, {"a": 3}]),
    f"a = {BIG}": ([{"a": BIG}], [{"a": BIG - 1}, {"a": BIG + 1}, {"a": float(BIG)}]),
    f"a > {BIG - 1}": ([{"a": BIG}, {"a": BIG + 1}], [{"a": BIG - 1}, {"a": float(BIG)}]),
    f"a >= {2**63 - 1}": ([{"a": 2**63 - 1}, {"a": 2.0**63}], [{"a": 2**63 - 2}, {"a": 9223372036854774784.0}]),
    f"a < {-(2**63) + 1}": ([{"a": -(2**63)}, {"a": -(2.0**63)}], [{"a": -(2**63) + 1}]),
    "a = 0.1": ([{"a": 0.1}], [{"a": 0.1 + 2**-56}, {"a": 0}]),
    "a < INFINITY": ([{"a": 1e308}, {"a": -INF}], [{"a": INF}, {"a": NAN}]),
    "a = INFINITY": ([{"a": INF}], [{"a": -INF}, {"a": 1e308}]),
    "a IS NAN": ([{"a": NAN}], [{"a": 1}, {"a": None}, {}, {"a": "NaN"}]),
    "a IS NUMBER": ([{"a": NAN}, {"a": 1}], [{"a": "1"}, {"a": True}, {}]),
    # missing is not null, and neither is a value
    "EXISTS b": ([{"b": None}, {"b": NAN}, {"b": []}, {"b": {}}, {"b": Interval(1, 2)}], [{}, {"a": 1}]),
    "NOT EXISTS b": ([{}, {"a": 1}], [{"b": None}, {"b": 0}]),
    "b = NULL": ([{"b": None}], [{}, {"b": 0}, {"b": ""}, {"b": []}]),
    "b IS NOT NULL": ([{"b": 0}], [{"b": None}, {}]),
    "b != 1": ([{"b": 2}, {"b": None}, {"b": True}, {"b": NAN}, {"b": [1]}, {"b": {"x": 1}}], [{"b": 1.0}, {}]),
    "NOT (b = 1)": ([{}, {"b": 2}, {"b": None}], [{"b": 1}]),
    "NOT (a = 1 OR b = 1)": ([{}, {"a": 2}], [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}]),
    "b = NULL OR NOT EXISTS b": ([{}, {"b": None}], [{"b": 1}]),
    # many kinds on one attribute
    "b IN (1, 'x', TRUE, NULL, X'61', TIMESTAMP '2026-01-01T12:00:00Z')": (
        [{"b": 1}, {"b": "x"}, {"b": True}, {"b": None}, {"b": b"a"}, {"b": LATER}], [{"b": False}, {"b": 0}, {"b": b"x"}, {"b": "1"}, {}]),
    "b > 5 OR b > 'm'": ([{"b": 6}, {"b": "n"}], [{"b": 5}, {"b": "m"}, {"b": b"n"}]),
    "b > 5 OR b = NULL OR b = TRUE": ([{"b": 6}, {"b": None}, {"b": True}], [{"b": 5}, {"b": False}, {"b": 1}, {}]),
    "b = 1 OR b ENDS WITH 'x'": ([{"b": 1}, {"b": "x"}, {"b": "ax"}], [{"b": "xa"}, {"b": 2}, {}]),
    "b > 5 OR b CONTAINS 'x' OR b = X'61'": ([{"b": 6}, {"b": "axa"}, {"b": b"a"}], [{"b": 5}, {"b": "a"}, {}]),
    "b = TRUE": ([{"b": True}], [{"b": 1}, {"b": False}, {"b": "TRUE"}]),
    "b >= TIMESTAMP '2026-01-01T12:00:00Z'": ([{"b": NOON}, {"b": LATER}], [{"b": NOON - timedelta(microseconds=1)}, {"b": "2027"}]),
    "b < X'62'": ([{"b": b""}, {"b": b"a\xff"}], [{"b": b"b"}, {"b": "a"}]),
    # strings: by code point, case matters
    "s = ''": ([{"s": ""}], [{"s": " "}, {"s": None}, {}]),
    "s = 'é'": ([{"s": "é"}], [{"s": "e\u0301"}, {"s": "É"}]),
    "s > 'a' AND s <= 'b'": ([{"s": "a\0"}, {"s": "b"}, {"s": "az"}], [{"s": "a"}, {"s": "b\0"}, {"s": "A"}]),
    "s > '\ufffd'": ([{"s": "\U00010000"}, {"s": "\U0010ffff"}], [{"s": "\ufffd"}, {"s": "\ud7ff"}]),
    "s LIKE 'ab%'": ([{"s": "ab"}, {"s": "abc"}, {"s": "ab\U0010ffff"}], [{"s": "a"}, {"s": "Ab"}, {"s": "ac"}, {"s": b"ab"}]),
    "s STARTS WITH '\U0010ffff'": ([{"s": "\U0010ffff"}, {"s": "\U0010ffffx"}], [{"s": "\ufffd"}, {"s": ""}]),
    "s ENDS WITH 'ab'": ([{"s": "ab"}, {"s": "xab"}, {"s": "abab"}], [{"s": "abx"}, {"s": "b"}, {"s": ["ab"]}]),
    "s CONTAINS 'aba'": ([{"s": "xababx"}, {"s": "aba"}], [{"s": "abba"}, {"s": ""}, {"s": 1}]),
    "s LIKE 'a%b_c'": ([{"s": "abxc"}, {"s": "a--b-c"}], [{"s": "abc"}, {"s": "abxcc"}]),
    "s ILIKE 'Ab%'": ([{"s": "aB"}, {"s": "ABX"}], [{"s": "b"}]),
    "s NOT LIKE '%b%'": ([{"s": "a"}, {"s": 1}, {"s": None}], [{"s": "b"}, {"s": "abc"}, {}]),
    "s CONTAINS 'a' AND s CONTAINS 'b' AND NOT (s LIKE 'a%')": ([{"s": "ba"}, {"s": "xab"}], [{"s": "ab"}, {"s": "b"}, {}]),
    "s STARTS WITH 'a' OR s ENDS WITH 'z' OR s = 'm'": ([{"s": "a"}, {"s": "az"}, {"s": "xz"}, {"s": "m"}], [{"s": "mm"}, {}]),
    # lists
    "ANY l = 1": ([{"l": [1]}, {"l": [0, 1.0]}, {"l": 1}, {"l": [[2, [1]]]}, {"l": [None, 1]}], [{"l": []}, {"l": [2]}, {"l": [True]}, {}, {"l": None}]),
    "ALL l > 0": ([{"l": []}, {"l": [1, 2]}, {"l": 5}], [{"l": [1, 0]}, {"l": ["x"]}, {"l": [NAN]}, {}]),
    "ANY l = 'a' AND ANY l = 'b'": ([{"l": ["b", "a"]}], [{"l": ["a"]}, {"l": "a"}, {"l": ["ab"]}]),
    "ANY l LIKE 'x%' AND ALL l != 'xx'": ([{"l": ["xa", 1]}, {"l": "x"}], [{"l": ["xa", "xx"]}, {"l": []}]),
    "NOT (ANY l = 1)": ([{}, {"l": []}, {"l": [2]}, {"l": 2}], [{"l": [2, 1]}, {"l": 1}]),
    "NOT (ALL l > 0)": ([{}, {"l": [0, 1]}, {"l": "x"}], [{"l": []}, {"l": 1}]),
    "l IS LIST": ([{"l": []}, {"l": [1]}], [{"l": 1}, {}]),
    # nested
    "u.id = 7": ([{"u": {"id": 7}}, {"u.id": 7}], [{"u": {"id": 8}}, {"u": 7}, {"id": 7}, {"u": [{"id": 7}]}]),
    "u IS OBJECT": ([{"u": {}}, {"u": {"id": 1}}], [{"u": [{}]}, {"u.id": 7}]),
    "ANY u.id = 7": ([{"u": [{"id": 6}, {"id": 7}]}, {"u": {"id": 7}}], [{"u": [{"id": 6}]}, {"u": []}]),
    "u HAS (id = 7 AND n > 2)": ([{"u": [{"id": 6}, {"id": 7, "n": 3}]}, {"u": {"id": 7, "n": 3}}], [{"u": [{"id": 7, "n": 1}, {"id": 6, "n": 3}]}, {}]),
    "NOT (u HAS (id = 7))": ([{}, {"u": [{"id": 6}]}, {"u": 1}], [{"u": [{"id": 7}]}]),
    # computed
    "x + y > 10": ([{"x": 6, "y": 5}, {"x": 10.5, "y": 0}], [{"x": 5, "y": 5}, {"x": 11}, {"x": "6", "y": "5"}, {"x": NAN, "y": 1}]),
    "NOT (x + y > 10)": ([{}, {"x": 1, "y": 1}, {"x": 20}], [{"x": 6, "y": 5}]),
    "x / y = 2": ([{"x": 4, "y": 2}], [{"x": 4, "y": 0}, {"x": 4}]),
    "x < $y": ([{"x": 1, "y": 2}, {"x": "a", "y": "b"}], [{"x": 2, "y": 2}, {"x": 1, "y": "b"}, {"x": 1}, {"y": 1}]),
    "x = $y": ([{"x": 1, "y": 1.0}, {"x": None, "y": None}, {"x": BIG, "y": BIG}], [{"x": BIG, "y": float(BIG)}, {"x": NAN, "y": NAN}, {"x": 1, "y": True}, {}]),
    f"x * 1 = {BIG}": ([{"x": BIG}], [{"x": BIG - 1}, {"x": float(BIG)}]),
    "LENGTH(s) >= 3 AND x = 1": ([{"s": "abc", "x": 1}, {"s": [1, 2, 3], "x": 1}], [{"s": "ab", "x": 1}, {"s": "abc"}, {"s": 3, "x": 1}]),
    "MATCHES(s, '%a________________b%')": ([{"s": "xa" + "-" * 16 + "b"}], [{"s": "ab"}, {"s": 1}, {}]),
    "CIDR(ip, '10.0.0.0/8')": ([{"ip": "10.1.2.3"}, {"ip": ["::1", "10.0.0.1"]}], [{"ip": "11.0.0.1"}, {"ip": "x"}, {}]),
    "ABS(x) > 2 OR x = $y": ([{"x": -3}, {"x": 1, "y": 1}, {"x": 3, "y": 3}], [{"x": 1}, {"x": 1, "y": 2}]),
    # several branches, several attributes
    "a = 1 OR b = 1": ([{"a": 1}, {"b": 1}, {"a": 1, "b": 1}], [{}, {"a": 2, "b": 2}]),
    "(a = 1 AND b = 2) OR (a = 2 AND b = 1)": ([{"a": 1, "b": 2}, {"a": 2, "b": 1}], [{"a": 1, "b": 1}, {"a": 2, "b": 2}, {"a": 1}]),
    "a < 5 AND (b = 1 OR NOT EXISTS c)": ([{"a": 1}, {"a": 1, "b": 1, "c": 1}], [{"a": 1, "c": 1}, {"a": 5, "b": 1}]),
    "EXISTS a OR NOT EXISTS a": ([{}, {"a": 1}], []),
    '"odd name" = 1': ([{"odd name": 1}], [{"odd_name": 1}]),
}  # fmt: skip
"""filter → events that match, events that do not"""

RANGES: dict[str, tuple[list[Tree], list[Tree], list[Tree]]] = {
    "a < 10": ([{"a": Interval(1, 9)}, {"a": Interval(None, 10, "[)")}], [{"a": Interval(9, 10)}, {"a": Interval(0, None)}], [{"a": Interval(10, 11)}, {"a": Interval("1", "2")}]),
    "a BETWEEN 1 AND 3": ([{"a": Interval(1, 3)}], [{"a": Interval(3, 4)}, {"a": Interval(0, 9)}], [{"a": Interval(3, 4, "(]")}, {"a": Interval(0, 1, "[)")}]),
    "a = 1": ([{"a": Interval(1, 1)}, {"a": 1}], [{"a": Interval(1, 2)}], [{"a": Interval(1, 2, "(]")}]),
    "a != 1": ([{"a": Interval(1, 2, "(]")}, {"a": Interval("a", "b")}], [{"a": Interval(0, 2)}], [{"a": Interval(1, 1)}]),
    "NOT (a > 5)": ([{"a": Interval(1, 5)}, {}], [{"a": Interval(5, 6)}], [{"a": Interval(6, 7)}]),
    "a < 5 OR a >= 5": ([{"a": Interval(0, 9)}], [], []),
    "a < 5 OR a > 6": ([{"a": Interval(0, 4)}], [{"a": Interval(0, 9)}], [{"a": Interval(5, 6)}]),
    "a < 5 OR (a >= 5 AND b = 1)": ([{"a": Interval(0, 9), "b": 1}], [{"a": Interval(0, 9), "b": 2}], [{"a": Interval(5, 9), "b": 2}]),
    "a > 1 AND b > 1": ([{"a": Interval(2, 3), "b": 2}], [{"a": Interval(1, 3), "b": Interval(0, 2)}], [{"a": Interval(1, 3), "b": 1}]),
    "s LIKE 'a%'": ([{"s": Interval("aa", "ab")}], [{"s": Interval("A", "b")}], [{"s": Interval("b", "c")}]),
    "s CONTAINS 'b'": ([{"s": Interval("b", "b")}], [{"s": Interval("a", "c")}], [{"s": Interval("a", "a")}]),
    "b >= TIMESTAMP '2026-01-01T12:00:00Z'": ([{"b": Interval(NOON, None)}], [{"b": Interval(None, NOON)}], [{"b": Interval(None, LATER, "[)")}]),
    "ANY l > 5": ([{"l": [1, Interval(6, 7)]}], [{"l": [Interval(1, 6)]}], [{"l": [Interval(1, 5), "x"]}]),
    "ALL l > 5": ([{"l": [6, Interval(6, 7)]}], [{"l": [6, Interval(1, 6)]}], [{"l": [5, Interval(6, 7)]}]),
    "x < $y": ([], [{"x": Interval(1, 2), "y": 0}], [{"x": Interval(1, 2)}]),
    "NOT (x + y > 10)": ([], [{"x": Interval(1, 2), "y": 1}], []),
    "EXISTS a": ([{"a": Interval(1, 2)}], [], []),
    "u HAS (id = 7)": ([{"u": [{"id": Interval(7, 7)}]}], [{"u": [{"id": Interval(7, 8)}]}], [{"u": [{"id": Interval(8, 9)}]}]),
}  # fmt: skip
"""filter → events all of which match, events part of which does, events none of which does"""

# Random filters, as texts

NAMES = ["a", "b", "c", "d", "e", "f"]
PATHS = [*NAMES, "f.x", "f.y"]
DAY = datetime(2026, 1, 1, tzinfo=UTC)

ORDERED = [
    ["-1e300", "-1", "0", "1", "2", "2.5", "3", str(BIG - 1), str(BIG)],
    ["''", "'A'", "'a'", "'ab'", "'abb'", "'b'", "'ba'"],
    ["TIMESTAMP '2026-01-01T00:00:00Z'", "TIMESTAMP '2026-01-01T00:00:00.000001Z'", "TIMESTAMP '2026-01-02T01:00:00+01:00'"],
    ["X''", "X'61'", "X'6162'"],
]  # fmt: skip
"""constants of each kind in their order"""
CONSTANTS = [*(text for group in ORDERED for text in group), "TRUE", "FALSE", "NULL"]
NUMBERS = ["-1", "0", "1", "2", "3"]
PATTERNS = ["a%", "%a", "%b%", "a%b", "_", "a_", "%ab%", "%", "", "__%", "ab", "A%", "%a%b%", "_b_"]
TYPES = ["NULL", "BOOL", "NUMBER", "STRING", "TIMESTAMP", "BYTES", "LIST", "OBJECT", "NAN", "MISSING"]
NOT = st.sampled_from(["", "", "NOT "])


def _one(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


@st.composite
def _between(draw: st.DrawFn, field: str) -> str:
    group = draw(st.sampled_from(ORDERED))
    low, high = sorted((draw(st.integers(0, len(group) - 1)), draw(st.integers(0, len(group) - 1))))
    return f"{field} {draw(NOT)}BETWEEN {group[low]} AND {group[high]}"


def _conditions(field: str) -> st.SearchStrategy[str]:
    """What can be asked of one field, or of the elements of a list."""
    ordered = st.sampled_from(ORDERED).flatmap(st.sampled_from)
    constants = st.sampled_from(CONSTANTS)
    return st.one_of(
        st.builds("{} {} {}".format, st.just(field), _one("<", "<=", ">", ">="), ordered),
        st.builds("{} {} {}".format, st.just(field), _one("=", "!="), constants),
        _between(field),
        st.builds(
            "{} {}IN ({})".format, st.just(field), NOT, st.lists(constants, min_size=1, max_size=4).map(", ".join)
        ),
        st.builds(
            "{} {}{} '{}'".format,
            st.just(field),
            NOT,
            _one("LIKE", "ILIKE", "STARTS WITH", "ENDS WITH", "CONTAINS"),
            st.sampled_from(PATTERNS),
        ),
        st.builds("{} IS {}{}".format, st.just(field), NOT, st.sampled_from(TYPES[:-1])),
    )


def _computed() -> st.SearchStrategy[str]:
    """What is asked of several fields, or of something computed from them."""
    path, op, number = st.sampled_from(PATHS), _one("=", "!=", "<", "<=", ">", ">="), st.sampled_from(NUMBERS)
    return st.one_of(
        st.builds("{} {} ${}".format, path, op, path),
        st.builds("{} {} {} {} {}".format, path, _one("+", "-", "*", "/", "%"), path, op, number),
        st.builds("{} * 2 - 1 {} {}".format, path, op, number),
        st.builds("ABS({}) {} {}".format, path, op, number),
        st.builds("LENGTH({}) {} {}".format, path, op, number),
        st.builds("UPPER({}) {} 'A'".format, path, op),
        st.builds("MATCHES({}, '{}')".format, path, st.sampled_from(PATTERNS)),
        st.builds("{}f HAS (x {} {} AND y {} {})".format, NOT, op, number, op, number),
        st.builds("{} {}BETWEEN ${} AND 2".format, path, NOT, path),
        st.builds("{} {}IN (${}, 1, 'a')".format, path, NOT, path),
    )


def _atoms() -> st.SearchStrategy[str]:
    plain = st.sampled_from(PATHS).flatmap(_conditions)
    return st.one_of(
        plain,
        plain,
        st.builds("{}EXISTS {}".format, NOT, st.sampled_from(PATHS)),
        st.builds("{} IS {}MISSING".format, st.sampled_from(PATHS), NOT),
        st.builds("{} ({})".format, _one("ANY", "ALL"), plain),
        st.builds("NOT ({} ({}))".format, _one("ANY", "ALL"), plain),
        _computed(),
    )


texts = st.recursive(
    _atoms(),
    lambda inner: st.one_of(
        st.builds("({} AND {})".format, inner, inner),
        st.builds("({} AND {} AND {})".format, inner, inner, inner),
        st.builds("({} OR {})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
    ),
    max_leaves=4,
)


@lru_cache(maxsize=100_000)
def read(text: str) -> Filter | None:
    """The filter of a text, or None if it contradicts itself or is too complex."""
    try:
        return parse(text)
    except (FilterSyntaxError, FilterTooComplex):
        return None


@st.composite
def filters(draw: st.DrawFn) -> Filter:
    """Composite only to be shown by a short name, as `events` is."""
    found = read(draw(texts))
    assume(found is not None)
    assert found is not None
    return found


# Random events

POINTS: list[list[object]] = [
    [-math.inf, -1, 0, 0.5, 1, 1.0, 2, 2.5, 3, float(BIG - 1), BIG - 1, BIG, BIG + 1, math.inf],
    ["", "A", "AB", "a", "a\0", "aa", "ab", "abb", "abc", "b", "ba", "bab", "c", "\U0010ffff"],
    [DAY - timedelta(microseconds=1), DAY, DAY + timedelta(microseconds=1), DAY + timedelta(days=1)],
    [b"", b"a", b"ab", b"b"],
]
"""values of each kind in their order"""
points = st.sampled_from(POINTS).flatmap(st.sampled_from)
scalars = st.one_of(points, points, st.sampled_from([None, True, False, math.nan, -0.0]))


@st.composite
def intervals(draw: st.DrawFn) -> Interval:
    group = draw(st.sampled_from(POINTS))
    low, high = sorted((draw(st.integers(0, len(group) - 1)), draw(st.integers(0, len(group) - 1))))
    closed = draw(_one("[]", "[)", "(]", "()")) if group[low] != group[high] else "[]"
    ends = draw(st.sampled_from([(group[low], group[high]), (None, group[high]), (group[low], None)]))
    return Interval(*ends, closed)  # type: ignore[arg-type]


singles = st.one_of(scalars, scalars, intervals())
lists = st.lists(st.one_of(singles, st.lists(scalars, max_size=2)), max_size=3)
objects = st.fixed_dictionaries({}, optional={"x": singles, "y": singles | lists, "z": scalars})
trees: st.SearchStrategy[Tree] = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.one_of(scalars, scalars, singles, lists) for name in NAMES[:-1]},
        "f": st.one_of(scalars, objects, st.lists(objects, max_size=3), lists),
    },
)


@st.composite
def events(draw: st.DrawFn) -> Tree | Event:
    tree = draw(trees)
    return Event(tree) if draw(st.booleans()) else tree


modes: st.SearchStrategy[Mode] = st.sampled_from(MODES)
