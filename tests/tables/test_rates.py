from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tables.networks import EVENTS, filters

from fieldfare.filters import Filter
from fieldfare.tables.rates import Gate, Meter, admitted, covers, merged
from fieldfare.tables.structures.forest_tables import PosetForest

clients = st.sampled_from("abc")
rates = st.none() | st.integers(0, 5)


@given(
    st.dictionaries(clients, st.integers(0, 4)), st.lists(st.tuples(st.integers(0, 6), st.sets(clients)), max_size=40)
)
def test_a_gate_lets_pass_so_many_in_a_window(limits: dict[str, int], calls: list[tuple[int, set[str]]]) -> None:
    """The first so many of each window, and no others."""
    gate, now = Gate(4.0, limits), 0
    asked: Counter[tuple[str, int]] = Counter()
    for wait, who in calls:
        now += wait
        before = gate
        passed, gate = gate.admit(who, now)
        asked.update((one, now // 4) for one in who)
        assert passed == {one for one in who if one not in limits or asked[one, now // 4] <= limits[one]}
        assert before.admit(who, now) == (passed, gate)  # a value: asking again gives the same


def test_time_does_not_run_backwards() -> None:
    passed, gate = Gate(1.0, {"a": 1}).admit("a", now=5.0)
    assert (passed, gate.admit("a", now=4.0)[0]) == ({"a"}, set())


@given(
    st.lists(st.tuples(filters, clients), max_size=12),
    st.dictionaries(clients, st.integers(0, 2)),
    st.lists(st.sampled_from(EVENTS), max_size=12),
)
def test_skipping_only_loses(
    pairs: list[tuple[Filter, str]], limits: dict[str, int], events: list[dict[str, object]]
) -> None:
    table: PosetForest[str] = PosetForest()
    for filter, client in pairs:
        table.add(filter, client)
    gate = Gate(1.0, limits)
    for event in events:
        all_open = {client for client in table.match(event) if gate.is_open(client)}
        assert admitted(table.forest, table.interfaces, event, gate) == all_open
        before = table.tests.match
        assert admitted(table.forest, table.interfaces, event, gate, skip=True) <= all_open
        skipping = table.tests.match - before
        admitted(table.forest, table.interfaces, event, gate)
        assert skipping <= table.tests.match - before - skipping
        _, gate = gate.admit(all_open, now=0.0)


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 9), st.sets(clients, min_size=1)), min_size=1, max_size=30))
def test_a_meter_averages_the_last_windows(keep: int, calls: list[tuple[int, set[str]]]) -> None:
    meter: Meter[str] = Meter(3.0, keep)
    seen: Counter[tuple[str, int]] = Counter()
    now, begin = 0, calls[0][0] // 3
    for wait, who in calls:
        now += wait
        meter = meter.count(who, now)
        seen.update((one, now // 3) for one in who)
        last = now // 3
        windows = range(max(begin, last - keep), last)
        expected = {one: sum(seen[one, w] for w in windows) / len(windows) for one in "abc" if windows}
        assert meter.averages(now) == {one: average for one, average in expected.items() if average}
        assert meter.counts == {one: seen[one, last] for one in "abc" if seen[one, last]}
        assert len(meter.history) <= keep


def test_a_meter_without_a_past() -> None:
    assert Meter[str](1.0).averages(now=3.0) == {}


@given(rates, rates, rates)
def test_limits_cover_and_merge(a: int | None, b: int | None, c: int | None) -> None:
    assert covers(a, a)
    assert covers(a, b) or covers(b, a)
    assert not (covers(a, b) and covers(b, c)) or covers(a, c)
    assert covers(merged(a, b), a)
    assert covers(merged(a, b), b)
    assert merged(a, b) in (a, b)


@pytest.mark.parametrize(("first", "second", "both"), [(1, 2, 2), (2, 1, 2), (None, 1, None), (1, None, None)])
def test_a_merged_limit_is_the_larger(first: int | None, second: int | None, both: int | None) -> None:
    assert merged(first, second) == both
