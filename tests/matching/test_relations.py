"""Covering, covered and overlapping from the index, against every stored filter one by one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.matching.strategies import filters

from fieldfare.filters import Filter, parse
from fieldfare.filters.examples import example_fields
from fieldfare.matching.index import Index


@pytest.mark.parametrize("kernels", ["numba", "numpy"])
@settings(max_examples=25, deadline=None)
@given(
    stored=st.lists(filters(), min_size=1, max_size=12),
    asked=st.lists(filters(), min_size=1, max_size=4),
    settle=st.booleans(),
)
def test_relations_agree_with_each_filter(
    kernels: str, stored: list[Filter], asked: list[Filter], settle: bool
) -> None:
    index: Index[int] = Index(enumerate(stored), kernels=kernels)
    if settle:
        index.settle()
    for wanted in (*asked, *stored[:3]):
        assert set(index.covering(wanted)) == {i for i, g in enumerate(stored) if g.covers(wanted)}
        assert set(index.covered(wanted)) == {i for i, g in enumerate(stored) if wanted.covers(g)}
        assert set(index.overlapping(wanted)) == {i for i, g in enumerate(stored) if wanted.overlaps(g)}


@settings(deadline=None)
@given(filters())
def test_an_example_satisfies_its_branch(wanted: Filter) -> None:
    for branch in wanted.branches:
        fields = example_fields(branch)
        for path, side in branch.items():
            if isinstance(path, str) and path in fields:
                assert side.matches(fields[path])


@settings(max_examples=60, deadline=None)
@given(st.lists(filters(), min_size=1, max_size=8), st.booleans())
def test_filters_read_back_as_they_were_added(stored: list[Filter], settle: bool) -> None:
    index: Index[int] = Index(enumerate(stored), kernels="numba")
    if settle:
        index.settle()
    for i, wanted in enumerate(stored):
        assert index.filter(i) == wanted


def test_explain() -> None:
    index: Index[str] = Index([("cheap", "symbol = 'IBM' AND price < 120.5")])
    (report,) = index.explain({"symbol": "IBM", "price": 130}, "cheap")
    assert [finding.ok for finding in report.findings] == [False, True]
    assert parse("price < 120.5").covers(index.filter("cheap"))
