"""The experiments are run by hand; here is what they are made of, and those that need only trees once, very small."""

from __future__ import annotations

import random
from collections import Counter
from statistics import mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldfare.events.event import fields_of
from fieldfare.routing.prefix.invariants import check
from fieldfare.routing.prefix.labels import ALPHABET, Order
from fieldfare.routing.prefix.optimizer import Optimizer
from fieldfare.routing.prefix.selection import match
from fieldfare.routing.prefix.tree import Tree
from fieldfare_lab.prefix import layout, queries, sizes
from fieldfare_lab.prefix.experiments import EXPERIMENTS
from fieldfare_lab.prefix.workload import DISTRIBUTIONS, Distribution, Mix, Workload, query_log, substring
from fieldfare_lab.results import Settings

TINY = Settings(1, 1, 0.02)
SEEDS = st.integers(0, 10_000)
KINDS = st.sampled_from(DISTRIBUTIONS)


@pytest.mark.parametrize("name", ["X1", "X4", "X5"])
def test_experiments_run(name: str) -> None:
    result = EXPERIMENTS[name](TINY)
    assert result.name == name
    assert result.claims
    assert all(len(line) == len(curves.at) for curves in result.curves for line in curves.lines.values())


def test_experiments_have_their_names_in_order() -> None:
    assert list(EXPERIMENTS) == sorted(EXPERIMENTS)


# The workload


@given(SEEDS, KINDS)
@settings(max_examples=30)
def test_filters_and_events_are_as_the_paper_says(seed: int, kind: Distribution) -> None:
    workload = Workload(seed, kind, Mix(50))
    for box, event in zip(workload.boxes(20), workload.events(20), strict=True):
        assert 1 <= len(box) <= 8
        assert not any(wanted.is_empty for wanted in box.values())
        assert 1 <= len(event) <= 12
        assert all(isinstance(value, int) and -50 <= value <= 50 for value in event.values())


@given(SEEDS, KINDS)
@settings(max_examples=10)
def test_a_seed_gives_the_same_and_events_do_not_depend_on_filters(seed: int, kind: Distribution) -> None:
    one, other = Workload(seed, kind), Workload(seed, kind)
    boxes = one.boxes(30)
    assert one.events(10) == other.events(10)
    assert other.boxes(30) == boxes


def test_names_and_values_are_as_uneven_as_their_distribution() -> None:
    shares, middle = {}, {}
    for kind in DISTRIBUTIONS:
        events = Workload(1, kind, Mix(100)).events(1_000)
        names = Counter(name for event in events for name in event)
        shares[kind] = sum(count for _, count in names.most_common(20)) / names.total()
        values = [value for event in events for value in event.values() if isinstance(value, int)]
        middle[kind] = mean(abs(value) < 20 for value in values)
    assert shares["uniform"] < 0.3 < shares["gaussian"] < shares["pareto"]
    assert middle["pareto"] < middle["uniform"] < 0.5
    assert middle["gaussian"] > 0.7


def test_frequent_names_are_not_first_in_the_alphabet() -> None:
    names = Counter(name for event in Workload(1, "pareto", Mix(100)).events(1_000) for name in event)
    first = sorted(names)[:20]
    assert sum(names[name] for name in first) < 0.5 * names.total()


def test_the_mix_says_how_many_are_equalities() -> None:
    for share in (0.0, 0.4, 1.0):
        boxes = Workload(1, "uniform", Mix(1_000, share)).boxes(300)
        single = [sum(n in wanted.values for n in range(-50, 51)) == 1 for box in boxes for wanted in box.values()]
        assert mean(single) == pytest.approx(share, abs=0.05)


def test_a_query_log_has_the_asked_size_repeats_and_words_by_zipf() -> None:
    log = query_log(1, 3_000, 10, words=500)
    assert log == query_log(1, 3_000, 10, words=500)
    assert len(log.queries) == 3_000
    assert len(set(log.words)) == len(log.words) == 500
    assert len(set(log.queries)) < 0.75 * len(log.queries)
    words = Counter(word for query in set(log.queries) for word in query.split())
    assert words[log.words[0]] > 3 * words[log.words[9]] > 9 * words[log.words[99]] > 0
    assert {len(query.split()) for query in log.queries} == {1, 2, 3, 4, 5}


@given(st.text("ab ", max_size=6), st.text("ab ", min_size=1, max_size=3))
def test_a_query_wants_the_texts_that_contain_it(text: str, query: str) -> None:
    assert substring(query).matches(fields_of({"text": text}), "overlaps") == (query in text)


# Trees


@given(SEEDS, KINDS, st.integers(1, 60), st.sampled_from([ALPHABET, Order(("a0003", "a0001"))]))
@settings(max_examples=25, deadline=None)
def test_a_tree_grows_as_that_of_an_optimizer(seed: int, kind: Distribution, count: int, order: Order) -> None:
    boxes = Workload(seed, kind, Mix(5)).boxes(count)
    tree, master = Tree(order=order), Optimizer(Tree(order=order))
    sizes.grow(tree, boxes)
    for box in boxes:
        master.add(box)
    assert [tree.label(id) for id in tree.preorder()] == [master.tree.label(id) for id in master.tree.preorder()]
    assert [tree.depth(id) for id in tree.preorder()] == [master.tree.depth(id) for id in master.tree.preorder()]
    check(tree)
    depths = Counter(tree.depth(id) for id in tree.preorder())
    assert list(sizes.levels(tree)) == [depths[level] for level in sorted(depths)]


def test_a_tree_that_is_looked_at_while_it_grows_grows_the_same() -> None:
    often, once = (sizes.grown(3, "gaussian", Mix(), counts, 20) for counts in ((10, 50, 200), (200,)))
    assert often.sizes[200] == once.sizes[200]
    assert often.levels == once.levels
    assert sum(once.levels) == once.sizes[200].nodes


def test_sizes_are_those_of_the_tags() -> None:
    workload, tree = Workload(4, "pareto"), Tree()
    sizes.grow(tree, workload.boxes(100))
    events = workload.events(30)
    selected = [sum(all(label.matches(fields_of(event)) for label in tree.path(id)) for id in tree.preorder())
                for event in events]  # fmt: skip
    size = sizes.size_of(tree, events)
    assert (size.nodes, size.mean, size.largest) == (tree.size, mean(selected), max(selected))


def test_matching_counts_filters() -> None:
    workload = Workload(4, "pareto")
    boxes, events = workload.boxes(100), workload.events(30)
    slow = mean(sum(box.matches(fields_of(event), "overlaps") for box in boxes) for event in events)
    assert sizes.matching(boxes, events) == pytest.approx(slow)
    assert slow > 0


# Layouts


def test_selective_attributes_come_first_and_popular_ones() -> None:
    workload = Workload(2, "pareto")
    boxes, events = workload.boxes(300), workload.events(100)
    found = layout.orders(boxes, events)
    assert found["alphabet"].first == ()
    asked = Counter(name for box in boxes for name in box)
    popular = [asked[name] for name in found["popularity"].first]
    assert popular == sorted(popular, reverse=True)
    assert set(found["selectivity"].first) == set(asked)


@pytest.mark.parametrize("kind", DISTRIBUTIONS)
def test_whole_tags_are_exact_and_limited_ones_lose_nothing(kind: Distribution) -> None:
    workload = Workload(5, kind)
    boxes, events = workload.boxes(150), workload.events(40)
    links = [f"link {number % layout.LINKS}" for number in range(len(boxes))]
    for order in layout.orders(boxes, events).values():
        tree = Tree(order=order)
        sizes.grow(tree, boxes)
        places = layout.placed(tree, boxes)
        wrong = dict.fromkeys(layout.DEPTHS, 0)
        right = 0
        for event in events:
            wanted = {link for box, link in zip(boxes, links, strict=True) if box.matches(fields_of(event), "overlaps")}
            assert places.read(match(tree, event)) == wanted
            right += len(wanted)
            for depth in layout.DEPTHS:
                found = places.read(match(tree, event, depth))
                assert found is not None
                assert found >= wanted
                wrong[depth] += len(found - wanted)
        for depth, limited in zip(layout.DEPTHS, layout.limited(places, events), strict=True):
            assert limited.unwanted == pytest.approx(100 * wrong[depth] / max(1, right + wrong[depth]))


def test_the_tag_of_a_text_is_the_queries_in_it() -> None:
    log = query_log(3, 200, 5, words=50)
    rng, tree = random.Random(1), Tree()
    different = list(dict.fromkeys(log.queries))
    sizes.grow(tree, map(substring, different))
    for _ in range(20):
        text = log.text(rng, 6)
        assert len(match(tree, {"text": text}).steps) == sum(query in text for query in different)
    assert tree.size == len(different)
    assert queries.SETS == {"A": (43_238, 28), "B": (77_301, 11_276)}
