"""The semantics of row patterns, case by case; Trino's documentation and tests are the reference."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.patterns.row_patterns import RowPatternError, compile_clause, kernels, match_recognize
from fieldfare.patterns.row_patterns.automaton import compile_pattern
from fieldfare.patterns.row_patterns.parser import parse_clause
from fieldfare.patterns.row_patterns.sorting import codes_of

FALL = pa.table({"id": [1, 2, 3, 4], "v": [90, 80, 70, 70]})
WAVE = pa.table({"id": range(1, 9), "v": [90, 80, 70, 80, 90, 50, 40, 60]})


def shown(
    table: pa.Table, rest: str, measures: str = "MATCH_NUMBER() AS m, CLASSIFIER() AS c"
) -> list[tuple[Any, ...]]:
    found = match_recognize(table, f"ORDER BY id MEASURES {measures} ALL ROWS PER MATCH {rest}")
    return [tuple(row[name] for name in found.column_names if name != "v") for row in found.to_pylist()]


def labels(table: pa.Table, pattern: str, define: str) -> str:
    """Return each row of the output as its number and variable, and each match behind a space."""
    parts: dict[int, str] = {}
    for id, number, name in shown(table, f"PATTERN ({pattern}) DEFINE {define}"):
        parts[number] = parts.get(number, "") + f"{id}{name or '-'}"
    return " ".join(parts.values())


LOWER = "B AS v <= PREV(v)"
FALLS = "B AS v < PREV(v)"


PATTERNS = (
    ("() | A", "A AS true", "1- 2- 3- 4-"),
    ("^A", "A AS true", "1A"),
    ("A^", "A AS true", ""),
    ("A$", "A AS true", "4A"),
    ("$A", "A AS true", ""),
    ("A B C", "B AS v < PREV(v), C AS v = PREV(v)", "2A3B4C"),
    ("B | C | A", "B AS v < PREV(v), C AS v <= PREV(v)", "1A 2B 3B 4C"),
    ("PERMUTE(B, C)", "B AS v < PREV(v), C AS v < PREV(v)", "2B3C"),
    ("PERMUTE(C, B)", "B AS v < PREV(v), C AS v <= PREV(v)", "2C3B"),
    ("B*", LOWER, "1- 2B3B4B"),
    ("B*?", LOWER, "1- 2- 3- 4-"),
    ("B+", LOWER, "2B3B4B"),
    ("B+?", LOWER, "2B 3B 4B"),
    ("B?", LOWER, "1- 2B 3B 4B"),
    ("B??", LOWER, "1- 2- 3- 4-"),
    ("B{,}", LOWER, "1- 2B3B4B"),
    ("B{2,}?", LOWER, "2B3B"),
    ("B{,2}", LOWER, "1- 2B3B 4B"),
    ("B{1,5}?", LOWER, "2B 3B 4B"),
    ("B{5,7}", LOWER, ""),
    ("B{2}", LOWER, "2B3B"),
    ("()* | B", FALLS, "1- 2- 3- 4-"),
    ("(){5,} | B", FALLS, "1- 2- 3- 4-"),
    ("B | ()*", FALLS, "1- 2B 3B 4-"),
    ("(B ()*)*", FALLS, "1- 2B3B 4-"),
    ("^* | B", FALLS, "1- 2- 3- 4-"),
    ("^+ | B", FALLS, "1- 2B 3B"),
    ("$+ | B", FALLS, "2B 3B"),
    ("B A $+", FALLS, "3B4A"),
    ("(() | A)*", "A AS true", "1- 2- 3- 4-"),
    ("A {- {- B+ -} A -}", FALLS, "1A"),
    ("(A+)+ B", "A AS v > 0, B AS v > 100", ""),
    ('a "b"+', '"b" AS v < PREV(v)', "1A2b3b"),
)


def test_patterns() -> None:
    found = [(pattern, define, labels(FALL, pattern, define)) for pattern, define, _ in PATTERNS]
    assert found == list(PATTERNS)


def test_conditions_look_back_at_any_variable() -> None:
    numbers = pa.table({"id": [1, 2, 3, 4, 5, 6], "v": [1, 2, 3, 4, 5, 6]})
    back = "X AS v = PREV(LAST(A.v), 3) + FIRST(A.v) + PREV(LAST(B.v), 2)"
    assert labels(numbers, "(A | B)* X", back) == "1B2A3A4A5B6X"
    names = "X AS FIRST(CLASSIFIER()) = 'B' AND FIRST(CLASSIFIER(), 1) = 'B' AND FIRST(CLASSIFIER(), 2) = 'B'"
    assert labels(numbers, "(A | B)+ X", names)[:8] == "1B2B3B4A"
    assert labels(numbers, "A+", "A AS NEXT(CLASSIFIER()) = 'A'") == ""


MEASURES = (
        ("v", [10, 20, 30]), ("FINAL LAST(v)", [30, 30, 30]), ("RUNNING FIRST(v)", [10, 10, 10]),
        ("FINAL LAST(v, 2)", [10, 10, 10]), ("FIRST(v, 2)", [30, 30, 30]), ("LAST(v, 10)", [None] * 3),
        ("PREV(v)", [None, 10, 20]), ("NEXT(v)", [20, 30, None]), ("NEXT(FIRST(v), 2)", [30] * 3),
        ("PREV(FIRST(v), 1)", [None] * 3), ("sum(v)", [10, 30, 60]), ("FINAL avg(v)", [20.0] * 3),
        ("count(A.*)", [1, 2, 3]), ("FINAL count(*)", [3] * 3), ("max(v) - min(v)", [0, 10, 20]),
        ("'x' || CLASSIFIER() || '_'", ["xA_"] * 3), ("NULLIF(v, 20)", [10, None, 30]), ("v / 4", [2.5, 5.0, 7.5]),
        ("v % 7", [3, 6, 2]), ("v / 0", [None] * 3), ("-v + 5.5", [-4.5, -14.5, -24.5]),
        ("CASE v WHEN 10 THEN 'ten' WHEN 20 THEN 'twenty' END", ["ten", "twenty", None]),
        ("CASE WHEN v > 15 THEN 1 ELSE 0 END", [0, 1, 1]), ("CAST(v AS VARCHAR)", ["10", "20", "30"]),
        ("CAST(v / 4 AS BIGINT)", [2, 5, 7]), ("v IN (10, 30)", [True, False, True]),
        ("v NOT BETWEEN 15 AND 25", [True, False, True]), ("greatest(v, 15)", [15, 20, 30]),
        ("least(v, 15, NULL)", [None] * 3), ("substr('abcdef', 2, 3)", ["bcd"] * 3), ("round(v / 4)", [3.0, 5.0, 8.0]),
        ("PREV(v) IS NULL", [True, False, False]), ("NOT (PREV(v) > 5)", [None, False, False]),
        ("PREV(v) > 5 OR v > 5", [True, True, True]), ("upper('a') LIKE '_'", [True] * 3),
        ("coalesce(PREV(v), -1)", [-1, 10, 20]), ("v IS DISTINCT FROM NULL", [True] * 3),
        ("if(v = 20, 'yes', 'no')", ["no", "yes", "no"]), ("length(CLASSIFIER())", [1, 1, 1]),
        ("TIMESTAMP '2026-01-02 00:00:00' - DATE '2026-01-01' = INTERVAL '24' HOUR", [True] * 3),
    )  # fmt: skip


def test_measures() -> None:
    table = pa.table({"id": [1, 2, 3], "v": [10, 20, 30]})
    found = [(text, [row[1] for row in shown(table, "PATTERN (A+)", f"{text} AS m")]) for text, _ in MEASURES]
    assert found == list(MEASURES)


def test_rows_outside_of_a_match_are_in_reach() -> None:
    table = pa.table({"id": [1, 2, 3, 4, 5], "v": [10, 20, 30, 30, 40]})
    for steps, value in ((4, None), (3, 10), (2, 20)):
        clause = f"ORDER BY id MEASURES PREV(B.v, {steps}) AS m PATTERN (A B) DEFINE B AS v = PREV(v)"
        assert match_recognize(table, clause)["m"].to_pylist() == [value]


def test_running_and_final_for_each_variable() -> None:
    table = pa.table({"id": [1, 2, 3, 4, 5], "v": [90, 80, 70, 100, 200]})
    measures = "B.v AS running, FINAL LAST(B.v) AS final, C.v AS c, NEXT(CLASSIFIER()) AS n"
    rest = "PATTERN (A B+ C+) DEFINE B AS v < PREV(v), C AS v > PREV(v)"
    assert shown(table, rest, measures) == [
        (1, None, 70, None, "B"), (2, 80, 70, None, "B"), (3, 70, 70, None, "C"), (4, 70, 70, 100, "C"),
        (5, 70, 70, 200, None),
    ]  # fmt: skip


def test_unions_of_variables() -> None:
    table = pa.table({"id": [1, 2, 3, 4], "v": [90, 80, 70, 80]})
    rest = "PATTERN ((L | H) A) SUBSET U = (L, H), W = (A, L, H) DEFINE A AS v = 80, L AS v < 80, H AS v > 80"
    assert shown(table, rest, "CLASSIFIER(U) AS u, CLASSIFIER(W) AS w, count(U.*) AS n") == [
        (1, "H", "H", 1), (2, "H", "A", 1), (3, "L", "L", 1), (4, "L", "A", 1)]  # fmt: skip


@pytest.mark.parametrize(
    ("skip", "starts"),
    [
        ("PAST LAST ROW", [1]),
        ("TO NEXT ROW", [1, 2, 4]),
        ("TO FIRST C", [1, 4]),
        ("TO LAST B", [1, 4]),
        ("TO U", [1, 4]),
    ],
)
def test_skips(skip: str, starts: list[int]) -> None:
    table = pa.table({"id": [1, 2, 3, 4, 5, 6], "v": [90, 80, 70, 80, 70, 80]})
    clause = "ORDER BY id MEASURES FIRST(id) AS s AFTER MATCH SKIP {} PATTERN (A B+ C+ D?) SUBSET U = (C, D) DEFINE {}"
    define = "B AS v < PREV(v), C AS v > PREV(v), D AS false"
    assert match_recognize(table, clause.format(skip, define))["s"].to_pylist() == starts
    for wrong, problem in (("TO A", "for ever"), ("TO D", "not in the match")):
        with pytest.raises(RowPatternError, match=problem):
            match_recognize(table, clause.format(wrong, define))


def test_rows_per_match() -> None:
    measures = "MEASURES MATCH_NUMBER() AS m, LAST(v) AS l"

    def found(rows: str, pattern: str) -> list[tuple[Any, ...]]:
        table = match_recognize(FALL, f"ORDER BY id {measures} {rows} PATTERN ({pattern}) DEFINE B AS v < PREV(v)")
        return [(row["m"], row["l"]) for row in table.to_pylist()]

    assert found("ONE ROW PER MATCH", "B*") == found("", "B*") == [(1, None), (2, 70), (3, None)]
    assert found("ONE ROW PER MATCH", "B+") == [(1, 70)]
    assert found("ALL ROWS PER MATCH SHOW EMPTY MATCHES", "B*") == [(1, None), (2, 80), (2, 70), (3, None)]
    assert found("ALL ROWS PER MATCH OMIT EMPTY MATCHES", "B*") == [(2, 80), (2, 70)]
    assert found("ALL ROWS PER MATCH WITH UNMATCHED ROWS", "B+") == [(None, None), (1, 80), (1, 70), (None, None)]


def test_unmatched_rows_are_those_that_no_match_covers() -> None:
    table = pa.table({"id": [1, 2, 3, 4, 5, 6], "v": [100, 100, 90, 80, 70, 100]})
    rest = "WITH UNMATCHED ROWS AFTER MATCH SKIP TO NEXT ROW PATTERN (A B{2}) DEFINE B AS v < PREV(v)"
    assert [(id, number) for id, number, _ in shown(table, rest)] == [
        (1, None), (2, 1), (3, 1), (4, 1), (3, 2), (4, 2), (5, 2), (6, None)]  # fmt: skip


def test_columns_of_the_output() -> None:
    table = pa.table({"extra": [1], "at": [2], "part": ["p"]})
    clause = "PARTITION BY PART ORDER BY at MEASURES CLASSIFIER() AS Kind {} PATTERN (A)"
    assert match_recognize(table, clause.format("")).column_names == ["part", "Kind"]
    assert match_recognize(table, clause.format("ALL ROWS PER MATCH")).column_names == ["part", "at", "Kind", "extra"]
    assert compile_clause(clause.format(""), table.schema).columns == ("at", "part")


def test_types_of_measures() -> None:
    schema = pa.schema([("i", pa.int32()), ("f", pa.float32()), ("d", pa.decimal128(9, 2)), ("s", pa.large_string()),
                        ("t", pa.timestamp("ns", "UTC")), ("day", pa.date32()), ("b", pa.bool_())])  # fmt: skip
    kinds = {
        "i": "int32", "sum(i)": "int64", "avg(i)": "double", "i + 1": "int64", "i / 2": "double", "sum(f)": "double",
        "max(d)": "decimal128(9, 2)", "min(s)": "string", "t - PREV(t)": "duration[us]",
        "day - PREV(day)": "duration[us]", "count(b)": "int64", "MATCH_NUMBER()": "int64", "CLASSIFIER()": "string",
    }  # fmt: skip
    for text, kind in kinds.items():
        assert str(compile_clause(f"MEASURES {text} AS m PATTERN (A)", schema).schema.field("m").type) == kind, text


MISTAKES = (
    ("PATTERN (A", "column 11: expected ), found the end"),
    ("PATTERN (A{0})", "column 11: the upper bound of a repetition must be at least 1"),
    ("PATTERN (A{3,2})", "column 11: the lower bound 3 exceeds the upper bound 2"),
    ("PATTERN (())", "the pattern has no variable"),
    ("PATTERN (A | )", "expected a pattern variable"),
    ("PATTERN (A) DEFINE B AS true", "column 20: B is no variable of the pattern"),
    ("PATTERN (A) DEFINE A AS true, A AS false", "A is defined twice"),
    ("PATTERN (A) SUBSET A = (A)", "the name A is taken"),
    ("PATTERN (A) SUBSET U = (A, X)", "X is no variable of the pattern"),
    ("AFTER MATCH SKIP TO X PATTERN (A)", "X is no variable of the pattern"),
    ("ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A {- B -})", "cannot be used WITH UNMATCHED ROWS"),
    ("PATTERN (A) DEFINE A AS FINAL LAST(v) > 1", "FINAL is not possible in DEFINE"),
    ("PATTERN (A) DEFINE A AS v", "DEFINE A is no condition but of type int64"),
    ("PATTERN (A) DEFINE A AS w > 1", "there is no column w; there are id, v"),
    ("PATTERN (A) DEFINE A AS B.v > 1", "B is no variable of the pattern, which has A"),
    ("PATTERN (A) DEFINE A AS v > 'x'", "column 27: values of the types int64, string do not go together"),
    ("PATTERN (A) DEFINE A AS v LIKE 'x'", "column 27: like is not possible for int64 and string"),
    ("MEASURES LAST(1) AS m PATTERN (A)", "LAST needs a column or CLASSIFIER() in its argument"),
    ("MEASURES LAST(A.v + B.v) AS m PATTERN (A B)", "LAST mixes rows of different variables: A and B"),
    ("MEASURES FIRST(PREV(v)) AS m PATTERN (A)", "PREV cannot stand in FIRST"),
    ("MEASURES PREV(NEXT(v)) AS m PATTERN (A)", "NEXT cannot stand in PREV"),
    ("MEASURES sum(LAST(v)) AS m PATTERN (A)", "LAST cannot stand in sum"),
    ("MEASURES FIRST(sum(v)) AS m PATTERN (A)", "sum cannot stand in FIRST"),
    ("MEASURES RUNNING PREV(v) AS m PATTERN (A)", "RUNNING stands before FIRST, LAST and aggregates only"),
    ("MEASURES sum(CLASSIFIER()) AS m PATTERN (A)", "sum is not possible for string"),
    ("MEASURES count(DISTINCT v) AS m PATTERN (A)", "count(DISTINCT ...) is not supported"),
    ("MEASURES A.* AS m PATTERN (A)", "A.* may stand in count() only"),
    ("MEASURES median(v) AS m PATTERN (A)", "column 10: the function median() is not supported"),
    ("MEASURES abs(v, 1) AS m PATTERN (A)", "abs() takes 1 arguments, not 2"),
    ("MEASURES (SELECT 1) AS m PATTERN (A)", "subqueries are not supported"),
    ("MEASURES v AS id ALL ROWS PER MATCH PATTERN (A)", "the measure id has the name of a column of the output"),
    ("MEASURES v AS m, v AS M PATTERN (A)", "there are two measures M"),
    ("MEASURES INTERVAL '1' MONTH AS m PATTERN (A)", "the unit MONTH is not supported"),
    ("MEASURES DATE 'today' AS m PATTERN (A)", "'today' is no date"),
    ("MEASURES 'x AS m PATTERN (A)", "the text that starts here has no closing quote"),
    ("ORDER BY v + 1 PATTERN (A)", "expected PATTERN"),
    ("SEEK PATTERN (A)", "SEEK belongs to row patterns in window functions"),
    (
        "PATTERN (A) DEFINE A AS lower(FIRST(CLASSIFIER()) || 'x') = 'ax'",
        "lower() is not supported in DEFINE where",
    ),
    ("PATTERN (A) ; more", "'more' is not expected here"),
    ("PATTERN (PERMUTE(A, B, C, D, E, F, G, H, I, J))", "the pattern has more than 20000 points"),
)


def mistake(clause: str) -> str:
    try:
        compile_clause(clause, WAVE.schema)
    except FilterSyntaxError as error:
        return str(error)
    return ""


def test_mistakes_are_named() -> None:
    found = [(clause, problem, mistake(clause)) for clause, problem in MISTAKES]
    assert [one for one in found if one[1] not in one[2]] == []


def test_times() -> None:
    begin = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    clicks = pa.table({"id": range(5), "at": [begin + datetime.timedelta(minutes=m) for m in (0, 10, 50, 55, 200)]})
    clause = "ORDER BY at MEASURES FIRST(at) AS since, LAST(at) - FIRST(at) AS long PATTERN (A B*) DEFINE B AS {}"
    for condition in ("at - PREV(at) <= INTERVAL 30 MINUTES", "at <= LAST(at, 1) + INTERVAL '0.5' HOUR"):
        found = match_recognize(clicks, clause.format(condition))
        assert [one.total_seconds() / 60 for one in found["long"].to_pylist()] == [10, 5, 0]
        assert found["since"][1].as_py() == begin + datetime.timedelta(minutes=50)


def test_the_order_of_rows() -> None:
    table = pa.table({"x": [2.0, None, float("nan"), -0.0, 0.0, -1.5], "id": range(6)})
    for keys, wanted in (
        ("x", [5, 3, 4, 0, 2, 1]), ("x DESC", [2, 0, 3, 4, 5, 1]), ("x NULLS FIRST, id", [1, 5, 3, 4, 0, 2]),
        ("x DESC NULLS FIRST, id DESC", [1, 2, 0, 4, 3, 5]),
    ):  # fmt: skip
        found = match_recognize(table, f"ORDER BY {keys} ALL ROWS PER MATCH PATTERN (A)")
        assert found["id"].to_pylist() == wanted
    assert np.argsort(codes_of(pa.array(["b", None, "ä", "a"])), kind="stable").tolist() == [3, 0, 2, 1]


def test_overflow_is_an_error() -> None:
    table = pa.table({"id": [1, 2], "v": [2**62, 2**62]})
    for clause in (
        "MEASURES sum(v) AS m PATTERN (A+)",
        "PATTERN (A+) DEFINE A AS sum(v) > 0",
        "MEASURES v * 4 AS m PATTERN (A)",
    ):
        with pytest.raises(ValueError, match=r"beyond 64 bits|overflow"):
            match_recognize(table, f"ORDER BY id {clause}")


def test_an_attempt_with_too_many_ways_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldfare.patterns.row_patterns.matching.MOST_STEPS", 1000)
    table = pa.table({"id": range(30), "v": [1] * 30})
    with pytest.raises(RowPatternError, match="took more than 1,000 steps"):
        match_recognize(table, "ORDER BY id PATTERN ((A | B)+ X) DEFINE X AS count(A.*) < 0")
    # Conditions that do not depend on the way are tried once for each row.
    assert not match_recognize(table, "ORDER BY id PATTERN ((A+)+ X) DEFINE X AS v > 1").num_rows


def test_the_automaton_of_a_repetition() -> None:
    automaton = compile_pattern(parse_clause("PATTERN (A{2,3} B?)").pattern)
    assert automaton.variables == ("A", "B")
    assert [automaton.after(place, 0) for place in range(-1, 4)] == [[0], [1], [2, 3, -1], [3, -1], [-1]]


def test_compiled_loops_give_the_same() -> None:
    pytest.importorskip("numba")
    values = np.random.default_rng(3).integers(0, 9, 4000)
    table = pa.table({"id": range(4000), "v": pa.array(values, mask=values == 8), "part": np.arange(4000) // 700})
    for pattern, define in (
        ("(A | B)+ C?", "A AS v < PREV(v), B AS count(A.*) < 3 AND sum(v) < 30, C AS v >= A.v OR max(B.v) = v"),
        ("A+? B{1,3} {- C* -}", "A AS v % 2 = 1 AND count(*) < 9, B AS avg(A.v) / 2 < v, C AS FIRST(A.v, 1) <> v"),
    ):
        clause = f"""
            PARTITION BY part ORDER BY id MEASURES sum(v) AS s, CLASSIFIER() AS c, min(B.v) AS m, FINAL avg(C.v) AS a
            ALL ROWS PER MATCH PATTERN ({pattern}) DEFINE {define}
        """
        compiled = compile_clause(clause, table.schema)
        rows, bounds = compiled.in_order(table)
        slow = compiled.run(rows, bounds)
        assert slow.num_rows > 1000
        assert compiled.run(rows, bounds, kernels.compiled()) == slow
