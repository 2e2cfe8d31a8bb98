"""Random clauses over random rows: the engine and its slow twin give the same output."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.patterns.row_patterns.oracle import Failed, Row, match_rows

from fieldfare.patterns.row_patterns import RowPatternError, compile_clause

SCHEMA = pa.schema([("p", pa.int64()), ("i", pa.int64()), ("x", pa.int64()), ("t", pa.string())])
CONDITIONS = (
    "{v}.x < PREV({v}.x)", "x > PREV(x)", "x = 1", "x <> 2", "x IS NULL", "NOT (x = 1)", "x > NEXT(x, 2)", "true",
    "x >= {o}.x", "{o}.x IS NULL OR x > {o}.x", "x <= FIRST({o}.x, 1)", "LAST(x, 1) = x", "x > FIRST(x)",
    "count(*) < 3", "count({o}.*) <= count({v}.*)", "sum(x) < 5", "avg({o}.x) >= x", "max(x) = x", "min({v}.x) < 2",
    "PREV(CLASSIFIER()) = '{o}'", "LAST(CLASSIFIER(), 2) <> '{v}'", "CLASSIFIER(U) = 'A'", "MATCH_NUMBER() < 3",
    "PREV(LAST({o}.x), 1) + x > 2", "x + {o}.x * 2 - FIRST(x) >= 1", "t = {o}.t", "t < FIRST(t, 1)", "max(t) = 'b'",
    "coalesce({o}.x, 1) = x", "CASE WHEN {o}.x > 1 THEN x > 0 ELSE x < 2 END", "x % 2 = {o}.x % 2",
    "x / {o}.x > 1", "LAST({v}.x, 1) IS DISTINCT FROM x", "NEXT(CLASSIFIER()) IS NULL", "x IN (1, {o}.x)",
    "LAST({o}.x = 1 OR CLASSIFIER({o}) = 'B')", "greatest(x, {o}.x) > 1", "count({o}.x) > 0 AND x BETWEEN 0 AND 2",
    "FIRST(U.x, 1) = x", "count(U.t) < 2",
)  # fmt: skip
MEASURES = (
    "x", "A.x", "FIRST(x)", "LAST({o}.x, 1)", "FINAL LAST(x)", "FINAL FIRST({o}.x, 1)", "CLASSIFIER()",
    "CLASSIFIER(U)", "MATCH_NUMBER()", "count(*)", "FINAL count({o}.*)", "sum({o}.x)", "FINAL avg(x)", "min(t)",
    "RUNNING max({o}.x)", "PREV(x)", "NEXT({o}.x, 2)", "PREV(FIRST(x, 1))", "NEXT(CLASSIFIER())", "count(U.x)",
    "{o}.x + x", "LAST(x * 2 + 1)", "coalesce({o}.x, 0)", "max(CLASSIFIER())", "PREV(CLASSIFIER(U), 1) || t",
    "FINAL sum(x) - sum(x)", "x IS NULL", "count({o}.t)", "PREV(FINAL LAST({o}.x))",
)  # fmt: skip
NAMES = ("A", "B", "C")


@st.composite
def patterns(draw: st.DrawFn, depth: int = 3, hides: bool = True) -> str:
    kinds = ["variable"] * 4 + (
        ["alternation", "concatenation", "quantified", "quantified", "permute", "special"] if depth else []
    )
    part = patterns(depth - 1, hides)
    match draw(st.sampled_from(kinds)):
        case "variable":
            return draw(st.sampled_from(NAMES))
        case "alternation":
            return f"({' | '.join(draw(st.lists(part, min_size=2, max_size=3)))})"
        case "concatenation":
            return f"({' '.join(draw(st.lists(part, min_size=2, max_size=3)))})"
        case "permute":
            return f"PERMUTE({', '.join(draw(st.lists(part, min_size=1, max_size=3)))})"
        case "special":
            hidden = [f"{{- {draw(part)} -}}"] if hides else []
            return draw(st.sampled_from(["()", "^", "$", *hidden]))
    quantifier = draw(st.sampled_from(["*", "+", "?", "{2}", "{1,}", "{,2}", "{1,3}", "{2,}"]))
    return f"({draw(part)}){quantifier}{draw(st.sampled_from(['', '', '?']))}"


@st.composite
def clauses(draw: st.DrawFn) -> str:
    show = draw(st.sampled_from(["ONE ROW PER MATCH", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
                                 "ALL ROWS PER MATCH WITH UNMATCHED ROWS"]))  # fmt: skip
    pattern = draw(patterns(hides="UNMATCHED" not in show))
    used = [name for name in NAMES if name in pattern.replace("PERMUTE", "")]
    if len(used) < 2:
        pattern, used = f"{pattern} (A | B)", sorted({*used, "A", "B"})
    other = st.sampled_from(used)

    def filled(text: str, v: str) -> str:
        return text.format(v=v, o=draw(other))

    defined = draw(st.lists(other, unique=True))
    definitions = []
    for name in defined:
        parts = [filled(draw(st.sampled_from(CONDITIONS)), name) for _ in range(draw(st.integers(1, 2)))]
        definitions.append(f"{name} AS {draw(st.sampled_from([' AND ', ' OR '])).join(parts)}")
    measures = [filled(draw(st.sampled_from(MEASURES)), "A") for _ in range(draw(st.integers(1, 4)))]
    if "A" not in used:
        measures = [one.replace("A.x", "x") for one in measures]
    skip = draw(st.sampled_from(["", "", "SKIP TO NEXT ROW", f"SKIP TO FIRST {draw(other)}", f"SKIP TO {draw(other)}",
                                 "SKIP TO LAST U"]))  # fmt: skip
    return " ".join(
        [
            draw(st.sampled_from(["", "PARTITION BY p"])),
            draw(st.sampled_from(["ORDER BY i", "ORDER BY x DESC, i", "ORDER BY x NULLS FIRST, i DESC"])),
            "MEASURES " + ", ".join(f"{one} AS m{place}" for place, one in enumerate(measures)),
            show,
            f"AFTER MATCH {skip}" if skip else "",
            f"PATTERN ({pattern}) SUBSET U = ({', '.join(used[:2])})",
            f"DEFINE {', '.join(definitions)}" if definitions else "",
        ]
    )


values = st.one_of(st.none(), st.integers(0, 3))
rows_of = st.lists(st.tuples(st.integers(0, 1), values, st.sampled_from([None, "a", "b", "c"])), max_size=7).map(
    lambda rows: [{"p": p, "i": i, "x": x, "t": t} for i, (p, x, t) in enumerate(rows)]
)


@given(clauses(), rows_of)
@example(
    "ORDER BY i MEASURES CLASSIFIER() AS c ALL ROWS PER MATCH PATTERN ((C?? A??)* $) SUBSET U = (A, C)",
    [{"p": 0, "i": i, "x": i, "t": None} for i in range(3)],
)
def test_the_engine_agrees_with_the_oracle(clause: str, rows: list[Row]) -> None:
    try:
        wanted = match_rows(rows, clause)
    except Failed:
        with pytest.raises(RowPatternError, match="AFTER MATCH SKIP TO"):
            run(clause, rows)
        return
    assert run(clause, rows) == wanted


def run(clause: str, rows: list[Row]) -> list[Row]:
    compiled = compile_clause(clause, SCHEMA)
    found = compiled.run(*compiled.in_order(pa.Table.from_pylist(rows, SCHEMA)))
    rows_found: list[Row] = found.to_pylist()
    return rows_found
