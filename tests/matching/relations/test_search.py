"""Covering, covered and overlapping from the index, against every stored filter one by one."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.matching.strategies import filters

from fieldfare.filters import Filter, parse
from fieldfare.filters.branch import Branch
from fieldfare.filters.examples import example
from fieldfare.matching import backend
from fieldfare.matching.index import Index
from fieldfare.matching.relations.witnesses import ANYTHING, witnesses_of
from fieldfare_lab.bench.workloads import generate

KERNELS = ["numba", "numpy"]


def check(index: Index[int], stored: dict[int, Filter], wanted: Filter) -> None:
    assert set(index.covering(wanted)) == {i for i, g in stored.items() if g.covers(wanted)}
    assert set(index.may_cover(wanted)) >= set(index.covering(wanted))
    assert set(index.covered(wanted)) == {i for i, g in stored.items() if wanted.covers(g)}
    assert set(index.overlapping(wanted)) == {i for i, g in stored.items() if wanted.overlaps(g)}


@few(25)
@given(
    kernels=st.sampled_from(KERNELS),
    stored=st.lists(filters(), min_size=1, max_size=8),
    changes=st.lists(st.tuples(st.integers(0, 15), filters() | filters() | st.none()), max_size=6),
    asked=st.lists(filters(), min_size=1, max_size=2),
    drain=st.booleans(),
)
def test_relations_agree_with_each_filter(
    kernels: str, stored: list[Filter], changes: list[tuple[int, Filter | None]], asked: list[Filter], drain: bool
) -> None:
    index: Index[int] = Index(enumerate(stored), kernels=kernels)
    known = dict(enumerate(stored))
    if drain:
        index.compact()
    check(index, known, asked[0])
    for i, replacement in changes:
        if replacement is not None:
            index.update(i, replacement)
            known[i] = replacement
        elif i in known:
            index.remove(i)
            del known[i]
    for wanted in (*asked, *stored[:3]):
        check(index, known, wanted)


def _varied(rng: random.Random, given: list[Filter]) -> Filter:
    """A filter like the given ones: one of them, a wider one, two of them together, or all but something."""
    wanted = rng.choice(given)
    branch = rng.choice(wanted.branches)
    some = rng.sample(sorted(branch, key=str), rng.randint(1, len(branch)))
    match rng.randrange(4):
        case 0:
            return wanted
        case 1:
            return Filter([Branch({dimension: branch[dimension] for dimension in some})])
        case 2:
            return wanted | rng.choice(given)
    return ~Filter([Branch({some[0]: branch[some[0]]})])


@pytest.mark.parametrize("workload", ["eq", "stock", "begen", "w1", "w2", "w3", "ads", "alerts"])
def test_many_filters(workload: str) -> None:
    """Several blocks, segments and deltas, with holes in them."""
    rng = random.Random(7)
    given = generate(workload, 1200, 1).parsed
    index: Index[int] = Index(kernels="numba")
    index.add_many(enumerate(given[:800]))
    for i, wanted in enumerate(given[800:], 800):
        index.add(i, wanted)
    known = dict(enumerate(given))
    for i in rng.sample(range(1200), 100):
        index.remove(i)
        del known[i]
    for i in rng.sample(sorted(known), 50):
        index.update(i, given[-i])
        known[i] = given[-i]
    for _ in range(4):
        check(index, known, _varied(rng, given))


def test_a_segment_built_without_kernels() -> None:
    given = generate("w3", 400, 1).parsed
    index: Index[int] = Index(enumerate(given), kernels="numpy")
    index._store.kernels = backend.load()
    for wanted in given[:5]:
        check(index, dict(enumerate(given)), wanted)


def test_an_opened_snapshot() -> None:
    given = generate("ads", 300, 1).parsed
    index = Index.open(Index(enumerate(given), kernels="numba").snapshot(), kernels="numba")
    for wanted in given[:5]:
        check(index, dict(enumerate(given)), wanted)


def test_asking_changes_nothing() -> None:
    index: Index[int] = Index([(1, "a = 'x' AND b > 5"), (2, "a STARTS WITH 'y'")], kernels="numba")
    before = index.snapshot()
    for text in ("a = 'new'", "new = 1", "a STARTS WITH 'long'", "a > 3", "b = TIMESTAMP '2026-01-01T00:00:00Z'"):
        for relation in (index.covering, index.covered, index.overlapping):
            relation(text)
    assert index.snapshot() == before


def test_in_the_order_they_came() -> None:
    given = [f"x > {i % 7} OR y = {i}" for i in range(600)]
    index: Index[int] = Index(enumerate(given), kernels="numba")
    assert index.overlapping("x > 3") == list(range(600))
    assert index.covered("x >= 0 OR y >= 0") == list(range(600))
    assert index.covering("x > 9") == list(range(600))


def test_a_filter_is_never_missed_while_it_is_updated() -> None:
    index: Index[str] = Index(((str(i), f"x > {i}") for i in range(300)), kernels="numba")
    index.add("moving", "x > 50")
    stop = threading.Event()

    def move() -> None:
        while not stop.is_set():
            for text in ("x > 60 AND y = 1", "x > 70 OR x = 65", "x > 80 AND s CONTAINS 'abc'"):
                index.update("moving", text)

    mover = threading.Thread(target=move)
    mover.start()
    try:
        for _ in range(200):
            assert index.covered("x > 50").count("moving") == 1
            assert index.overlapping("x > 50").count("moving") == 1
    finally:
        stop.set()
        mover.join()


@given(filters())
def test_an_example_satisfies_its_branch(wanted: Filter) -> None:
    for branch in wanted.branches:
        first, last = witnesses_of(branch)
        for path, side in branch.items():
            if isinstance(path, str):
                assert side.matches(example(side))
            for found in (first, last):
                if isinstance(path, str) and path in found and found[path] is not ANYTHING:
                    assert side.matches(found[path])


@few(25)
@given(st.lists(filters(), min_size=1, max_size=8), st.booleans())
def test_filters_read_back_as_they_were_added(stored: list[Filter], drain: bool) -> None:
    index: Index[int] = Index(enumerate(stored), kernels="numba")
    if drain:
        index.compact()
    for i, wanted in enumerate(stored):
        assert index.filter(i) == wanted


def test_explain() -> None:
    index: Index[str] = Index([("cheap", "symbol = 'IBM' AND price < 120.5")])
    (report,) = index.explain({"symbol": "IBM", "price": 130}, "cheap")
    assert [finding.ok for finding in report.findings] == [False, True]
    assert parse("price < 120.5").covers(index.filter("cheap"))
