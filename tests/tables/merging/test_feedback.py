"""Unwanted events narrow the mergers of a neighbour: never below the roots, and until the budget is kept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.tables.mergeable import EVENTS, check_mergers, pool, remembered

from fieldfare.filters import Filter, parse
from fieldfare.filters.branch import Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.merging.feedback import PATIENCE, WINDOW, MergingFeedback
from fieldfare.tables.merging.per_neighbour import NeighbourMerger
from fieldfare.tables.merging.roots import RootMerger
from fieldfare.tables.merging.rules import Merging
from fieldfare.tables.updates import TableUpdate


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with remembered():
        yield


class Optimist:
    """Statistics by which no merger wastes anything: as wrong as statistics can be."""

    def share(self, dimension: Dimension, wanted: Constraint, within: Constraint) -> float:
        return 1.0


BLIND = Merging(imperfect=True, budget=0.25, statistics=Optimist())
events = st.sampled_from([event for event in EVENTS if "s" not in event])


def passed(merger: RootMerger, some: list[dict[str, object]]) -> int:
    return sum(any(m.filter.matches(event) for m in merger.mergers()) for event in some)


@few(20)
@given(st.lists(pool, min_size=2, max_size=6), st.lists(events, max_size=20), st.integers(0, 5))
def test_apart_are_no_more_than_needed_and_enough(
    roots: list[Filter], some: list[dict[str, object]], allowed: int
) -> None:
    merger = RootMerger(Merging(imperfect=True, budget=0.9))
    merger.change(roots := minimal_cover(roots))
    some = [event for event in some if not any(root.matches(event) for root in roots)]
    before, wide = merger.exported(), passed(merger, some)
    merger.merging = Merging()  # no waste from now on
    update = merger.relieve(some, allowed)
    assert {*before, *update.added} - set(update.removed) == set(merger.exported())
    check_mergers(merger.mergers(), roots, merger.exported(), Merging(imperfect=True, budget=0.9))
    assert passed(merger, some) <= allowed
    assert (update == TableUpdate()) == (wide <= allowed)


@few(20)
@given(st.lists(pool, min_size=2, max_size=6), st.lists(events, min_size=4, max_size=12, unique_by=str))
def test_the_share_of_unwanted_events_returns_below_the_budget(
    roots: list[Filter], traffic: list[dict[str, object]]
) -> None:
    """The neighbour sends what matches; after at most a dozen windows the budget is kept, and nothing was lost."""
    merger: NeighbourMerger[str] = NeighbourMerger("a", BLIND)
    roots = minimal_cover(roots)
    known = set(merger.change({"a": TableUpdate(tuple(roots))}).get("a", TableUpdate()).added)
    share = 1.0
    for _ in range(12):
        sent = [event for event in traffic if any(one.matches(event) for one in known)]
        wanted = [event for event in traffic if any(root.matches(event) for root in roots)]
        assert all(event in sent for event in wanted)
        share = 1 - len(wanted) / len(sent) if sent else 0.0
        merger.note_forwards("a", len(wanted) * WINDOW, [event for event in sent if event not in wanted] * WINDOW)
        for one in merger.overdue:
            update = merger.relieve(one)
            known = (known - set(update.removed)) | set(update.added)
    assert known == merger.exported("a")
    assert share <= BLIND.budget


def test_the_budget_falls_fast_and_returns_slowly() -> None:
    feedback, stray = MergingFeedback(0.5), {"x": 1}
    budgets = []
    for _ in range(9):
        feedback.note(0, [stray] * WINDOW)
        assert feedback.overdue
        feedback.judge()
        budgets.append(feedback.budget)
    assert all(a == 2 * b or b == 0 for a, b in pairwise([0.5, *budgets]))
    assert budgets[-1] == 0
    for _ in range(PATIENCE * 9):
        feedback.note(WINDOW, [])
    assert feedback.budget == 0.5
    assert not feedback.overdue


def test_a_large_batch_is_judged_by_its_last_events() -> None:
    feedback = MergingFeedback(0.1)
    feedback.note(600, [{"x": n} for n in range(400)])
    unwanted, allowed = feedback.judge()
    assert unwanted == [{"x": n} for n in range(400 - WINDOW, 400)]
    assert allowed == WINDOW // 4  # 0.1 of all events is a quarter of the unwanted ones


def test_a_neighbour_without_filters_is_forgotten() -> None:
    merger: NeighbourMerger[str] = NeighbourMerger("a", BLIND)
    a, b = parse("x BETWEEN 0 AND 1 AND y BETWEEN 0 AND 1"), parse("x BETWEEN 8 AND 9 AND y BETWEEN 8 AND 9")
    merger.note_forwards("a", 0, [{"x": 5}] * WINDOW)
    assert merger.overdue == []
    merger.change({"a": TableUpdate((a, b))})
    merger.note_forwards("a", 0, [{"x": 5, "y": 5}] * WINDOW)
    assert merger.overdue == ["a"]
    merger.change({"a": TableUpdate((), (a, b))})
    assert merger.overdue == []
