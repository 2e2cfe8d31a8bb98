"""Filters with parameters, filled in from a tree, against a twin that replaces text."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.filters import FilterSyntaxError, parse
from fieldfare.filters.dynamic import DynamicFilter, is_dynamic
from fieldfare.routing.places import Places, ploc
from fieldfare.simulation.filling import SQUARE, Dynamic

values = st.one_of(st.integers(-3, 3), st.sampled_from(["a", "b", "it's", ":low", "myloc"]), st.booleans())
predicates = st.sampled_from(
    [
        "at IN myloc",
        "at NOT IN myloc",
        "x = :one",
        "x < :two",
        "x IN :some",
        "x NOT IN :some",
        "x IN (:one, 2)",
        "y = 1",
    ]
)
texts = st.recursive(
    predicates,
    lambda inner: st.one_of(
        inner.map(lambda one: f"NOT ({one})"),
        st.tuples(inner, st.sampled_from([" AND ", " OR "]), inner).map(lambda some: f"({''.join(some)})"),
    ),
    max_leaves=4,
)
given_values = st.fixed_dictionaries(
    {}, optional={"one": values, "two": st.integers(-3, 3), "some": st.lists(values, max_size=3),
                  "myloc": st.sampled_from("abcd")},
)  # fmt: skip
events = st.fixed_dictionaries({}, optional={"x": values, "y": values, "at": st.sampled_from("abcd")})


@given(texts, given_values, st.integers(0, 2), st.lists(events, min_size=1, max_size=6))
def test_filled_in_as_by_replacing_text(
    text: str, stated: dict[str, Any], here: int, some: list[dict[str, object]]
) -> None:
    wanted = Dynamic("id", text).filled(stated, Places(SQUARE, here))
    given = {**stated, "myloc": sorted(ploc(SQUARE, stated["myloc"], here))} if "myloc" in stated else stated
    found = DynamicFilter(text).fill(given)
    if "some" not in stated or stated["some"]:  # the twin cannot write an empty list
        assert found == wanted
    assert [found.matches(event) for event in some] == [wanted.matches(event) for event in some]


@pytest.mark.parametrize(
    ("text", "stated", "problem"),
    [
        ("x IN :some", {"some": 3}, "column 6: :some behind IN is a list of values, not 3"),
        ("x < :one", {"one": [3]}, "column 5: .* is not a value"),
        ("x LIKE :one", {"one": 3}, "LIKE needs a string"),
    ],
)
def test_a_value_of_a_wrong_type_is_named(text: str, stated: dict[str, Any], problem: str) -> None:
    with pytest.raises(FilterSyntaxError, match=problem):
        DynamicFilter(text).fill(stated)


def test_what_is_dynamic() -> None:
    assert is_dynamic("a IN MyLoc")
    assert not is_dynamic("myloc = ':a' AND a IN (myloc, 3)")
    assert not is_dynamic("a IN myloc AND")
    assert DynamicFilter("x = :a AND (y IN :b OR z IN myloc)").parameters == {"a", "b", "myloc"}
    with pytest.raises(FilterSyntaxError, match="no values were given for myloc"):
        parse("a IN myloc")
    assert parse("a IN :some", some=[1, 2]) == parse("a IN (1, 2)")
