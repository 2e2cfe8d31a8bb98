"""The load: each event matches as many filters as it should, the oracle agrees with brute force, results are read right."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldfare.filters import parse
from fieldfare_lab.node import load as loads

shapes = st.fixed_dictionaries(
    {"matches": st.integers(1, 15), "subscribers": st.integers(1, 30), "groups": st.integers(1, 12)}
)


def made(shape: dict[str, int], seed: int) -> loads.Load:
    filters = shape["groups"] * shape["matches"]
    return loads.make(seed, filters=filters, subscribers=shape["subscribers"], matches=shape["matches"])


@settings(deadline=None, max_examples=40)
@given(shapes, st.integers(0, 2**32))
def test_the_oracle_agrees_with_brute_force(shape: dict[str, int], seed: int) -> None:
    load = made(shape, seed)
    filters = [(bound.subscriber, parse(bound.text)) for bound in load.filters]
    due: list[list[int]] = [[] for _ in range(load.subscribers)]
    for event in loads.events(load, 20):
        matching = [subscriber for subscriber, filter in filters if filter.matches(event.fields)]
        assert len(matching) == load.matches
        assert set(matching) == set(event.receivers)
        assert len(event.receivers) == min(load.matches, load.subscribers)
        for subscriber in set(matching):
            due[subscriber].append(event.number)
    assert due == loads.expected(load, 20)


@settings(deadline=None, max_examples=20)
@given(st.sampled_from(["one", "fanout", "nested"]), st.integers(1, 30))
def test_topics_agree_with_brute_force(shape: loads.Shape, subscribers: int) -> None:
    load = loads.topics(1, shape, subscribers)
    assert len(load.filters) == subscribers
    filters = [(bound.subscriber, parse(bound.text)) for bound in load.filters]
    for event in loads.events(load, 20):
        assert tuple(one for one, filter in filters if filter.matches(event.fields)) == event.receivers
        assert len(event.receivers) == (subscribers if shape == "fanout" else 1)


@settings(deadline=None, max_examples=40)
@given(shapes, st.integers(0, 2**32))
def test_bindings_say_what_filters_say(shape: dict[str, int], seed: int) -> None:
    load = made(shape, seed)
    filters = [(bound, parse(bound.text)) for bound in load.filters]
    for event in loads.events(load, 10):
        for bound, filter in filters:
            arguments = dict(bound.arguments)
            assert arguments.pop("x-match") == "all"
            passes = all(event.compared.get(field) == value for field, value in arguments.items())
            assert passes == filter.matches(event.fields)


def test_the_load_of_the_bar() -> None:
    load = loads.make(1)
    assert len(load.filters) == len({bound.text for bound in load.filters}) == 10_000
    assert set(Counter(bound.subscriber for bound in load.filters).values()) == {100}
    assert {len(receivers) for receivers in load.receivers} == {10}
    # No single field gives a group away.
    for field in loads.FIELDS:
        assert len({group[field] for group in load.groups}) < 50
    kinds = {type(value) for bound in load.filters for _, value in bound.equalities}
    assert kinds == {str, int}
    one, two = [[parse(bound.text) for bound in load.filters[at : at + 10]] for at in (0, 5000)]
    event = next(event for event in loads.events(load, 100_000) if event.compared == load.groups[0])
    assert [filter.matches(event.fields) for filter in one] == [True] * 10
    assert not any(filter.matches(event.fields) for filter in two)


@settings(deadline=None, max_examples=30)
@given(shapes, st.integers(0, 2**32))
def test_a_seed_gives_one_load(shape: dict[str, int], seed: int) -> None:
    load = made(shape, seed)
    assert load == made(shape, seed)
    assert list(loads.events(load, 30))[:7] == list(loads.events(load, 7))
    held = Counter(bound.subscriber for bound in load.filters)
    if load.matches <= load.subscribers:
        assert max(held.values()) - min(held[one] for one in range(load.subscribers)) <= 1


def test_seeds_differ() -> None:
    assert loads.make(1, filters=100).filters != loads.make(2, filters=100).filters


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"matches": 16}, "1 to 15 filters"),
        ({"matches": 0}, "1 to 15 filters"),
        ({"filters": 105}, "multiple of 10"),
        ({"filters": 0}, "multiple of 10"),
        ({"subscribers": 0}, "at least one subscriber"),
    ],
)
def test_impossible_loads_are_refused(options: dict[str, int], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        loads.make(1, **options)


def test_what_is_lost_doubled_or_misled_is_found() -> None:
    load = loads.make(3, filters=100, subscribers=20)
    right = loads.expected(load, 50)
    shuffled = [random.Random(1).sample(numbers, len(numbers)) for numbers in right]
    assert loads.is_correct(load, 50, shuffled)
    first = next(at for at, numbers in enumerate(right) if numbers)
    lost = [numbers[1:] if at == first else numbers for at, numbers in enumerate(right)]
    doubled = [numbers + numbers[:1] if at == first else numbers for at, numbers in enumerate(right)]
    other = next(at for at, numbers in enumerate(right) if right[first][0] not in numbers)
    misled = [numbers + right[first][:1] if at == other else numbers for at, numbers in enumerate(lost)]
    for wrong in (lost, doubled, misled, right[:-1]):
        assert not loads.is_correct(load, 50, wrong)


def test_percentiles() -> None:
    assert loads.percentiles([]) is None
    assert loads.percentiles([0.001 * n for n in range(101)]) == (50.0, 99.0)


def test_results() -> None:
    result = loads.Result(
        contender="it", filters=10, events=100, deliveries=1000, seconds=2.0, cpu_seconds=1.0, client_cpu_seconds=0.5,
        other_cpu_seconds=0.1, idle_mb=1.0, busy_mb=2.0, paced=25.0, p50_ms=1.0, p99_ms=2.0, correct=True,
    )  # fmt: skip
    assert (result.events_per_second, result.deliveries_per_second, result.cores) == (50.0, 500.0, 0.5)
    assert result.events_per_cpu_second == 100.0
    assert msgspec.structs.replace(result, cpu_seconds=0.0).events_per_cpu_second == float("inf")
    assert msgspec.json.decode(msgspec.json.encode(result), type=loads.Result) == result


def test_processes_are_watched() -> None:
    before = loads.machine_cpu_seconds()
    busy = "sum(range(20_000_000)); print('done', flush=True); input()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        pids = loads.family(process.pid)
        assert len(pids) == 2
        assert os.getpid() not in pids
        assert loads.cpu_seconds(pids) > loads.cpu_seconds(pids[:1])
        # Ticks are counted in different places: they may differ by a few.
        assert loads.machine_cpu_seconds() - before > loads.cpu_seconds(pids) - 0.1
        assert loads.memory_mb(pids) > loads.memory_mb(pids[:1]) > 1
        process.communicate(b"\n")
    assert loads.cpu_seconds(pids) == loads.memory_mb(pids) == 0.0
