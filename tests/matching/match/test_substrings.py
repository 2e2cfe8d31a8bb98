"""Filters found by a piece of text, and the checks that verify what arrays and substrings cannot decide."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.matching.strategies import RANGES, VECTORS, Tree, events, filters, modes
from tests.matching.test_engine import KERNELS, pairs

from fieldfare.events import arrow
from fieldfare.events.event import Event, fields_of
from fieldfare.filters import Filter, parse
from fieldfare.filters.constraint import Mode
from fieldfare.matching import BruteForce
from fieldfare.matching.index import Index
from fieldfare.matching.match.verification import check_of

WORDS = ["time", "timeout", "out", "disk", "disk full", "ull", "äö", "\U0001f426 x", "a%b", "code 7"]
RULES = {
    "alone": "line CONTAINS 'timeout'",
    "inside": "line CONTAINS 'out'",
    "wide": "line CONTAINS '\U0001f426 x'",
    "escaped": r"line LIKE '%a\%b%'",
    "two": "line CONTAINS 'disk' AND line CONTAINS 'ull'",
    "fields": "line CONTAINS 'time' AND host CONTAINS 'node'",
    "key": "service = 's1' AND line CONTAINS 'disk'",
    "not": "line CONTAINS 'time' AND NOT line CONTAINS 'code 7'",
    "quiet": "line CONTAINS 'time' AND NOT (host STARTS WITH 'test')",
    "either": "line CONTAINS 'timeout' OR line CONTAINS 'äö' OR service = 's2'",
    "like": "line LIKE 't_me%x'",
    "end": "line ENDS WITH 'out' AND level >= 2",
    "case": "line ILIKE '%DISK%'",
    "any": "ANY line CONTAINS 'disk'",
    "computed": "line CONTAINS 'time' AND level * 2 > 4",
    "nested": "at.zone CONTAINS 'eu-'",
}


def event(rng: random.Random) -> dict[str, Any]:
    return {
        "line": " ".join(rng.choices(WORDS, k=rng.randrange(1, 4))),
        "host": rng.choice(["node1", "test-node", "x"]),
        "service": f"s{rng.randrange(4)}",
        "level": rng.choice([1, 2, 3, 2.5]),
    }


def filled(kernels: str, more: int = 0) -> tuple[Index[str], BruteForce[str]]:
    rng = random.Random(1)
    rules = {**RULES, **{f"many{i}": f"line CONTAINS '{rng.choice(WORDS)[:3]}{i % 7}'" for i in range(more)}}
    brute = BruteForce[str]()
    brute.add_many(rules.items())
    return Index(rules.items(), kernels=kernels), brute


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("more", [0, 300])
def test_single_events(kernels: str, more: int) -> None:
    index, brute = filled(kernels, more)
    rng = random.Random(2)
    trees: list[Tree] = [event(rng) for _ in range(200)]
    trees += [{}, {"line": None}, {"line": 7}, {"line": b"timeout"}, {"line": ["disk", "x"]}, {"line": []}]
    trees += [
        {"line": {"timeout": 1}},
        {"at": {"zone": "eu-1"}},
        {"at": [{"zone": "eu-1"}]},
        {"line": "timeout", "host": 1},
    ]
    for tree in trees:
        assert sorted(index.match(tree)) == sorted(brute.match(tree)), tree
    for id in list(index)[::2]:
        index.remove(id)
        brute.remove(id)
    index.compact()
    for tree in trees:
        assert sorted(index.match(tree)) == sorted(brute.match(tree)), tree


@pytest.mark.parametrize("kernels", KERNELS)
def test_batches(kernels: str) -> None:
    index, brute = filled(kernels, 300)
    rng = random.Random(3)
    trees = [event(rng) for _ in range(60)]
    flat = arrow.to_batch([Event({k: v for k, v in tree.items() if rng.random() < 0.9}) for tree in trees])
    nested = arrow.to_batch([Event({**tree, "at": {"zone": f"{rng.choice('eu')}u-1"}}) for tree in trees])
    lists = arrow.to_batch([Event({**tree, "line": [tree["line"], "x"]}) for tree in trees])
    objects = arrow.to_batch([Event({**tree, "line": {"a": tree["line"]}}) for tree in trees])
    numbers = arrow.to_batch([Event({**tree, "line": number}) for number, tree in enumerate(trees)])
    for batch in (flat, nested, lists, objects, numbers, flat.slice(7, 20), flat.slice(0, 0)):
        expected = {(row, id) for row, fields in enumerate(arrow.rows(batch)) for id in brute.match(fields)}
        assert pairs(index.match_batch(batch)) == expected
    expected = pairs(index.match_batch(flat))
    lines = flat.schema.get_field_index("line")
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        other = flat.set_column(lines, "line", flat["line"].cast(kind))
        assert pairs(index.match_batch(other)) == expected
        assert pairs(index.match_batch(other.slice(50))) == {(row - 50, id) for row, id in expected if row >= 50}


def test_a_substring_that_says_all_is_not_verified() -> None:
    index: Index[str] = Index([("alone", RULES["alone"]), ("key", RULES["key"])])
    for _ in range(3):
        assert index.match({"line": "a timeout of a disk", "service": "s1"}) == ["alone", "key"]
        assert index.match({"line": "all is well"}) == []
    assert index.stats().checks == [("key", 3)]
    assert index.filter("alone") == parse(RULES["alone"])


@pytest.mark.parametrize("kernels", KERNELS)
def test_snapshots_keep_what_is_found_by_substrings(kernels: str, tmp_path: Path) -> None:
    index, brute = filled(kernels, 300)
    index.add_many((f"user{i}", f"user = 'u{i}' AND line CONTAINS 'time'") for i in range(300))  # some here, some there
    brute.add_many((f"user{i}", f"user = 'u{i}' AND line CONTAINS 'time'") for i in range(300))
    index.save(tmp_path / "index.ff")
    opened = Index.open(tmp_path / "index.ff", kernels=kernels)
    rng = random.Random(4)
    for _ in range(100):
        tree = {**event(rng), "user": f"u{rng.randrange(300)}"}
        assert sorted(opened.match(tree)) == sorted(index.match(tree)) == sorted(brute.match(tree))
    assert all(opened.filter(id) == index.filter(id) for id in index)


@pytest.mark.parametrize("text", [*VECTORS, *RANGES, *RULES.values()])
def test_checks_agree_with_filters(text: str) -> None:
    wanted = parse(text)
    trees = [tree for parts in (*VECTORS.values(), *RANGES.values()) for part in parts for tree in part]
    rng = random.Random(5)
    for tree in [*trees, *(event(rng) for _ in range(50))]:
        for mode in ("overlaps", "covers"):
            agree(wanted, fields_of(tree), mode)


@given(filters(), events(), modes)
def test_checks_agree_with_any_filter(wanted: Filter, tree: Any, mode: Mode) -> None:
    agree(wanted, fields_of(tree), mode)


def agree(wanted: Filter, fields: Any, mode: Any) -> None:
    for found_by_text in (False, True):
        check = check_of(wanted, found_by_text=found_by_text)
        assert check(fields, mode) == wanted.matches_fields(fields, mode), (fields, mode)
