"""The kernels and their translation to C give the same answers in the same order, on whatever an index asks of them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tests.matching.strategies import RANGES, VECTORS, read
from tools.c_reference.native import Native, asked, batch_of, build, constants, owners, pairs

from fieldfare.events import Interval
from fieldfare.matching import kernels
from fieldfare.matching.index import Index
from fieldfare.matching.store import layout
from fieldfare.matching.store.state import scratch
from fieldfare_lab.bench.workloads import generate

pytestmark = pytest.mark.needs("a C compiler")


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Native:
    return build(tmp_path_factory.mktemp("native"))


def agreed(native: Native, index: Index[Any], events: Sequence[Mapping[str, object]]) -> list[int]:
    """Every owner that was found, after both have found the same, one by one and as a batch."""
    seen: list[int] = []
    for arena, keys in asked(index, events):
        ours, theirs = scratch(arena), scratch(arena)
        single = [owners(kernels.match_one, arena, one, ours) for one in keys]
        for one, expected in zip(keys, single, strict=True):
            assert np.array_equal(owners(native.match_one, arena, one, theirs), expected)
        batch = batch_of(keys)
        rows, found = pairs(kernels.match_batch, arena, batch)
        their_rows, their_found = pairs(native.match_batch, arena, batch)
        assert np.array_equal(their_rows, rows)
        assert np.array_equal(their_found, found)
        one_by_one = [(row, owner) for row, some in enumerate(single) for owner in some.tolist()]
        assert sorted(zip(rows.tolist(), found.tolist(), strict=True)) == sorted(one_by_one)
        assert native.match_many(arena, keys, theirs, np.empty(0, np.int64)) == len(found)
        seen += found.tolist()
    return seen


@pytest.mark.parametrize("name", ["eq", "stock", "begen", "w3", "ads"])
def test_workloads(native: Native, name: str) -> None:
    workload = generate(name, 1000, 100)
    index: Index[int] = Index(enumerate(workload.parsed), kernels="numba")
    found = agreed(native, index, workload.events)
    assert len(found) > 0 or name == "eq"
    index.compact()  # now laid out by what was seen
    assert sorted(agreed(native, index, workload.events)) == sorted(found)


def test_all_vectors(native: Native) -> None:
    trees = [tree for sides in (*VECTORS.values(), *RANGES.values()) for side in sides for tree in side]
    index: Index[str] = Index([(text, text) for text in {**VECTORS, **RANGES}], kernels="numba")
    index.compact()
    assert agreed(native, index, trees)


def mixed(rng: random.Random) -> str:
    """A filter of sets, ranges, prefixes and suffixes, with and without NOT, on a few attributes."""

    def names(count: int) -> str:
        return ", ".join(f"'{rng.choice('abc')}{rng.randrange(30)}'" for _ in range(count))

    low = rng.randrange(-50, 50)
    kinds = [
        f"n BETWEEN {low} AND {low + rng.randrange(40)}",
        f"m {rng.choice(['<', '>='])} {low / 2}",
        f"n NOT BETWEEN {low} AND {low + 3}",
        f"n IN ({', '.join(str(rng.randrange(-50, 50)) for _ in range(rng.randrange(2, 9)))})",
        f"s = {names(1)}",
        f"s != {names(1)}",
        f"s IN ({names(rng.randrange(2, 6))})",
        f"s NOT IN ({names(4)})",
        f"NOT (t IN ({names(3)}))",
        f"t STARTS WITH '{rng.choice('abc')}{rng.randrange(3)}'",
        f"t ENDS WITH '{rng.randrange(30)}'",
        f"flag = {rng.choice(['TRUE', 'FALSE', 'NULL'])}",
        "NOT EXISTS m",
    ]
    return " AND ".join(rng.sample(kinds, rng.randrange(1, 4)))


def tree(rng: random.Random) -> dict[str, object]:
    """An event for them; some of its values are wild: lists, intervals, integers that no float equals."""
    some: dict[str, object] = {
        "n": rng.choice([rng.randrange(-60, 60), rng.uniform(-60, 60), [1, 2], Interval(-5, 5), 2**53 + 1]),
        "m": rng.uniform(-30, 30),
        "s": rng.choice([f"{rng.choice('abc')}{rng.randrange(30)}", "unheard of", ["a1", "b2"], 7]),
        "t": f"{rng.choice('abc')}{rng.randrange(30)}",
        "flag": rng.choice([True, False, None]),
    }
    return {name: value for name, value in some.items() if rng.random() < 0.8}


def test_a_mix_of_everything(native: Native) -> None:
    rng = random.Random(11)
    index: Index[int] = Index(kernels="numba")
    wanted = [wish for _ in range(1500) if (wish := read(mixed(rng))) is not None]
    index.add_many(enumerate(wanted))
    events = [tree(rng) for _ in range(150)]
    found = agreed(native, index, events)
    assert min(found) < 0 < max(found)  # sure ones, and wild ones to be verified
    for number in range(0, len(wanted), 3):
        index.remove(number)  # only its bits go
    left = agreed(native, index, events)
    assert 0 < len(left) < len(found)
    numbers = {(owner if owner >= 0 else -owner - 1) & layout.NUMBER_MASK for owner in left}
    assert all(number % 3 for number in numbers)


def test_what_does_not_fit_is_counted_but_not_written(native: Native) -> None:
    index: Index[int] = Index(((i, f"a < {i}") for i in range(1, 700)), kernels="numba")
    ((arena, keys),) = asked(index, [{"a": 10}, {"a": 200}])
    for kernel in (kernels, native):
        out, event, owner = np.full(9, -7), np.full(9, -7, np.int32), np.full(9, -7)
        assert kernel.match_one(arena, keys[0], scratch(arena), out[:5]) == 689
        assert kernel.match_batch(arena, batch_of(keys), event[:5], owner[:5]) == 689 + 499
        assert all((side[:5] >= 0).all() and (side[5:] == -7).all() for side in (out, event, owner))


def test_constants_are_those_of_the_layout() -> None:
    assert {"BITS": layout.BITS, "LANES": layout.LANES, "WILD_ROW": 255}.items() <= constants().items()
