"""What is let in: filters of every language that can be read back, and nothing that is too large."""

from __future__ import annotations

from typing import Any

import pytest

from fieldfare.filters import NOTHING, FilterDocumentError, FilterSyntaxError, FilterTooComplex, parse
from fieldfare.filters.admission import LIMITS, Limits, admit
from fieldfare.protocol import wire


@pytest.mark.parametrize(
    "written",
    ["x + y = TRUE", "-x = TRUE", "NOT x * 2 = TRUE", "type = 'quote' AND x % y = TRUE", "price < 5 OR a CONTAINS 'b'"],
)
def test_what_is_let_in_can_be_read_back(written: str) -> None:
    assert parse(str(admit(written))) == admit(written) == parse(written)


def test_documents_and_filters_are_let_in() -> None:
    assert admit([{"prefix": {"type": "com."}}]) == parse("type STARTS WITH 'com.'")
    assert admit({"exact": {"type": "com"}}) == parse("type = 'com'")
    assert admit(parse("x = 1") & parse("y = 2")) == parse("x = 1 AND y = 2")


@pytest.mark.parametrize("written", ["price <", 5, None, {"no": 1}, "x = 1 AND x = 2", NOTHING, "(" * 5000 + "x"])
def test_what_means_nothing_is_refused(written: Any) -> None:
    with pytest.raises((FilterSyntaxError, FilterDocumentError, FilterTooComplex)):
        admit(written)


@pytest.mark.parametrize(
    "written",
    ["x = '" + "a" * 10_000 + "'", [{"exact": {"type": "a." * 5_000}}], parse("x = '" + "a" * 40_000 + "'")],
    ids=["text", "document", "filter"],
)
def test_what_is_too_long_is_refused(written: object) -> None:
    with pytest.raises(FilterTooComplex, match="characters"):
        admit(written)
    assert not admit(written, Limits(text=20_000, normal=50_000)).is_empty


TEXT = 9_800


def repeated(head: str, part: str, between: str, tail: str = "") -> str:
    """A part, with its number in it, as often as there is room."""
    parts: list[str] = []
    size = len(head) + len(tail)
    while size < TEXT:
        parts.append(part.replace("#", str(len(parts))))
        size += len(parts[-1]) + len(between)
    return head + between.join(parts) + tail


EXPENSIVE = [
    repeated("x IN (", "#", ",", ") AND " + " AND ".join(f"(a{i}<1 OR b{i}>2)" for i in range(8))),
    repeated("", "(a#<1 OR b#>2)", " AND "),
    repeated("", "(a<# OR b>#)", " AND "),
    repeated("", "a<# AND b>#", " OR "),
    repeated("NOT (", "a<# AND b>#", " OR ", ")"),
    repeated("", "x CONTAINS 'a#'", " AND "),
    repeated("", "x NOT ENDS WITH 'a#'", " AND "),
    repeated("", "ANY x = #", " AND "),
    repeated("", "(ANY x = # OR ALL x < #)", " AND "),
    repeated("", "a HAS (x=# AND y=#)", " AND "),
    repeated("", "NOT a HAS (x=# AND y=#)", " AND "),
    repeated("", "PATH('//a/*/b',x<# AND y=#)", " OR "),
    repeated("", "CIDR(x,'10.#.0.0/16')", " OR "),
    repeated("", "a# < $b#", " OR "),
    "x LIKE '%a" + "_" * 9 + "' OR x LIKE '%b" + "_" * 9 + "'",
    "x LIKE '%" + "a%" * 400 + "' AND x LIKE '%b" + "a%" * 400 + "'",
    "NOT (a=1 OR " * 600 + "x=1" + ")" * 600,
    "ABS(" * 1900 + "x" + ")" * 1900 + "=1",
    "a HAS (" * 1200 + "x=1" + ")" * 1200,
    "PATH('//*', " * 3 + "x=1" + ")" * 3,
    {"sql": repeated("", "x LIKE '%#'", " XOR ")},
    {"any": [{"suffix": {"x": f"a{number}"}} for number in range(400)]},
]


@pytest.mark.parametrize("written", EXPENSIVE, ids=range(len(EXPENSIVE)))
def test_what_costs_too_much_is_refused(written: object) -> None:
    """Each of these is short. One took 227 s before it was counted, another 39."""
    with pytest.raises((FilterTooComplex, FilterSyntaxError)):
        admit(written)


def test_what_was_let_in_is_read_by_neighbours_however_long_it_has_become() -> None:
    wide = admit(" AND ".join(f"(a{i}<1 OR b{i}>2)" for i in range(8)))
    assert len(str(wide)) > LIMITS.text
    with pytest.raises(FilterTooComplex):
        admit(str(wide))
    assert wire.filter_of(str(wide)) == wide


def test_the_algebra_is_bounded_without_a_budget() -> None:
    listed = parse(f"x IN ({', '.join(f'{number}00000' for number in range(10_000))})")
    many = parse(" AND ".join(f"(a{i}<1 OR b{i}>2)" for i in range(5)))
    with pytest.raises(FilterTooComplex, match="characters"):
        listed & many
    with pytest.raises(FilterTooComplex, match="characters"):
        listed | (listed & parse("x > 5 AND y = 1")) & many


def test_a_budget_is_the_same_with_and_without_a_cache() -> None:
    written = "x LIKE '%cold%' OR x LIKE '%cache_' OR x ENDS WITH 'warm'"

    def most() -> int:
        return next(steps for steps in range(0, 100_000, 100) if _let_in(written, steps))

    assert most() == most()


def _let_in(written: str, steps: int) -> bool:
    try:
        admit(written, Limits(steps=steps))
    except FilterTooComplex:
        return False
    return True
