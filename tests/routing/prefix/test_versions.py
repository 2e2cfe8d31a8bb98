"""Brokers of different versions, events in flight, an optimizer that dies: no event may be lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.prefix.samples import EVENTS, all_filters, events, exact, filters, limits, optimized, placed
from tools.prefix.world import INTERFACES, World
from tools.samples import FILTERS as RANGES
from tools.samples import UNIVERSE as POINTS

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.routing.prefix.difference import wdiff
from fieldfare.routing.prefix.optimizer import Optimizer
from fieldfare.routing.prefix.placements import Placements
from fieldfare.routing.prefix.selection import match
from fieldfare.routing.prefix.tag_reader import forward
from fieldfare.routing.prefix.tree import Term, Tree, TreeVersion
from fieldfare.routing.prefix.updates import TreeUpdate, UpdateGap, apply, whole

BROKERS = 3
brokers = st.integers(0, BROKERS - 1)
some = st.sampled_from(RANGES[:12]) | all_filters
"""few, so that they come and go and come again"""

Step = tuple[Any, ...]
changes = st.one_of(
    st.tuples(st.just("subscribe"), brokers, st.sampled_from(INTERFACES), some),
    st.tuples(st.just("unsubscribe"), brokers, st.integers(0, 9)),
)
spreading = st.one_of(
    st.tuples(st.just("hear"), st.just(0)),
    st.tuples(st.just("hear"), st.integers(0, 1)),
    st.tuples(st.just("update")),
    st.tuples(st.just("arrive"), brokers),
    st.tuples(st.just("arrive"), brokers),
    st.tuples(st.just("arrive_at_standby")),
)
publishing = st.tuples(st.just("publish"), brokers, events, limits)
rare = st.one_of(
    st.tuples(st.just("calm")),
    st.tuples(st.just("forget"), brokers, st.integers(0, 3)),
    st.tuples(st.just("fail")),
    st.tuples(st.just("update"), st.integers(-3, -2)),
)
steps = st.lists(
    st.one_of(changes, changes, spreading, spreading, spreading, publishing, rare), min_size=5, max_size=60
)


def run(steps: Sequence[Step]) -> World:
    world = World(BROKERS)
    for name, *arguments in steps:
        getattr(world, name)(*arguments)
        world.look()
    return world


@given(steps)
def test_no_event_is_lost(steps: Sequence[Step]) -> None:
    world = run(steps)
    world.drain()
    world.look()
    for event in EVENTS:
        for broker in world.brokers:
            tag = broker.places.enter(event)
            for other in world.brokers:
                found = forward(other.places.tree, tag, other.places)
                assert found is not None, "all have the same version"
                assert found >= other.exact(event)


@given(st.lists(filters, max_size=8), st.lists(filters, max_size=6), st.lists(events, max_size=4))
def test_a_broker_that_is_ahead_reads_old_tags(first: list[Filter], then: list[Filter], some: list[Event]) -> None:
    """What was there before is found as exactly as before, unless it has moved below younger nodes."""
    optimizer = optimized(first)
    old = optimizer.publish(0.0)
    places = placed(first, old)
    tags = [(event, places.enter(event)) for event in some]
    for filter in then:
        for box in filter.boxes:
            optimizer.add(box)
    update = optimizer.publish(0.0)
    if update is not None:
        places.apply(update)
    for event, tag in tags:
        assert forward(places.tree, tag, places) == exact(first, event)


@given(st.lists(filters, max_size=8), st.lists(filters, max_size=4), st.lists(events, max_size=4))
def test_a_broker_that_is_behind_reads_tags_that_name_nothing_new(
    first: list[Filter], then: list[Filter], some: list[Event]
) -> None:
    optimizer = optimized(first)
    old = optimizer.publish(0.0)
    behind, ahead = placed(first, old), placed(first, old)
    for filter in then:
        for box in filter.boxes:
            optimizer.add(box)
    update = optimizer.publish(0.0)
    if update is not None:
        ahead.apply(update)
    for event in some:
        tag = ahead.enter(event)
        assert forward(behind.tree, tag, behind) in (None, exact(first, event))


spans = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(sorted)
deep = st.builds(lambda x, y: parse(f"x BETWEEN {x[0]} AND {x[1]} AND y BETWEEN {y[0]} AND {y[1]}"), spans, spans)
shallow = st.builds(lambda x: parse(f"x BETWEEN {x[0]} AND {x[1]}"), spans)
pool = st.lists(deep | deep | shallow, min_size=2, max_size=7)
turns = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=8)
"""filters of a pool by their numbers, as one subscribes or unsubscribes"""


def turn(optimizer: Optimizer, pool: list[Filter], turns: list[tuple[int, bool]]) -> list[TreeUpdate]:
    """Change what is wanted, and publish; in two steps."""
    found = []
    for part in (turns[::2], turns[1::2]):
        for number, add in part:
            box = pool[number % len(pool)].boxes[0]
            if add:
                optimizer.add(box)
            elif optimizer.has(box):
                optimizer.remove(box)
        update = optimizer.publish(0.0)
        found += [] if update is None else [update]
    return found


def follow(pool: list[Filter], updates: list[TreeUpdate]) -> Placements:
    """A broker with all of the pool, whatever the optimizer knows of it."""
    places = placed(pool, None)
    for update in updates:
        places.apply(update)
    return places


def all_are_found(readers: list[Placements], writers: list[Placements], pool: list[Filter]) -> None:
    for event in POINTS:
        for limit in (None, 1):
            tags = [writer.enter(event, limit) for writer in writers]
            for reader in readers:
                for tag in tags:
                    assert reader.forward(tag, event) >= exact(pool, event)


@given(pool, turns, turns)
def test_every_version_reads_the_tags_of_every_other(
    pool: list[Filter], first: list[tuple[int, bool]], then: list[tuple[int, bool]]
) -> None:
    optimizer = Optimizer()
    updates = [*turn(optimizer, pool, first), *turn(optimizer, pool, then)]
    places = [follow(pool, updates[:count]) for count in range(len(updates) + 1)]
    all_are_found(places, places, pool)


@settings(max_examples=60)
@given(pool, turns, turns, turns)
def test_two_optimizers_may_go_on_from_the_same_version(
    pool: list[Filter], first: list[tuple[int, bool]], then: list[tuple[int, bool]], other: list[tuple[int, bool]]
) -> None:
    """One is thought dead and is not. Brokers follow one or the other, or first one, then the other."""
    optimizer = Optimizer(boxes=[filter.boxes[0] for filter in pool[::2]])
    common = turn(optimizer, pool, first)
    replica = apply(Tree(), whole(follow(pool, common).tree))
    successor = Optimizer(replica, [filter.boxes[0] for filter in pool[::3]], term=Term(1))
    old, new = turn(optimizer, pool, then), turn(successor, pool, other)
    ways = [common, [*common, *old[:1]], [*common, *old], [*common, *new[:1]], [*common, *new]]
    places = [follow(pool, way) for way in ways]
    turned = follow(pool, [*common, *old])
    turned.apply(whole(places[-1].tree))
    all_are_found([*places, turned], [*places, turned], pool)


def test_new_siblings_do_not_hinder_brokers_that_are_behind() -> None:
    optimizer = optimized([parse("x = 1")])
    update = optimizer.publish(0.0)
    behind, ahead = placed([parse("x = 1")], update), placed([parse("x = 1")], update)
    optimizer.add(parse("x = 2").boxes[0])
    second = optimizer.publish(0.0)
    assert second is not None
    ahead.apply(second)
    assert forward(behind.tree, ahead.enter({"x": 1}), behind) == {"0"}
    assert forward(behind.tree, ahead.enter({"x": 2}), behind) is None  # a node that it does not have
    optimizer.remove(parse("x = 2").boxes[0])
    third = optimizer.publish(0.0)
    assert third is not None
    ahead.apply(third)
    assert forward(behind.tree, ahead.enter({"x": 1}), behind) is None  # places may have shifted


def test_a_node_over_others_shifts_places() -> None:
    wanted = [parse("x = 0"), parse("x = 1"), parse("x = 3")]
    optimizer = optimized(wanted)
    update = optimizer.publish(0.0)
    behind, ahead = placed(wanted, update), placed(wanted, update)
    optimizer.add(parse("x < 2").boxes[0])
    second = optimizer.publish(0.0)
    assert second is not None
    ahead.apply(second)
    tag = ahead.enter({"x": 3})
    assert tag.steps == ((1, 1),)
    assert forward(behind.tree, tag, behind) is None
    assert forward(ahead.tree, tag, ahead) == forward(ahead.tree, behind.enter({"x": 3}), ahead) == {"2"}


def test_what_stands_at_new_nodes_counts_for_those_above() -> None:
    optimizer = optimized([parse("x = 0")])
    places = placed([parse("x = 0")], optimizer.publish(0.0))
    event = {"x": 0, "y": 1}
    assert places.forward(places.enter(event, 1), event) == {"0"}
    optimizer.add(parse("x = 0 AND y = 1").boxes[0])
    update = optimizer.publish(0.0)
    assert update is not None
    places.apply(update)
    places.add(parse("x = 0 AND y = 1").boxes[0], "new")
    assert places.forward(places.enter(event, 1), event) == {"0", "new"}
    places.add(parse("x = 0 AND y = 1").boxes[0], "newer")
    assert places.forward(places.enter(event, 1), event) == {"0", "new", "newer"}
    places.remove(parse("x = 0 AND y = 1").boxes[0], "newer")
    places.remove(parse("x = 0").boxes[0], "0")
    assert places.forward(places.enter(event, 1), event) == {"new"}


def test_what_waits_for_nodes_of_its_own_stands_above() -> None:
    """`insertR`: a superset, at the deepest nodes that there are."""
    optimizer = optimized([parse("x > 1")])
    places = placed([parse("x > 1"), parse("x > 1 AND y = 1")], optimizer.publish(0.0))
    assert places.loose == 1
    assert places.forward(places.enter({"x": 2, "y": 0}), {"x": 2, "y": 0}) == {"0", "1"}
    assert places.forward(places.enter({"x": 0, "y": 1}), {"x": 0, "y": 1}) == set()
    for box in parse("x > 1 AND y = 1").boxes:
        optimizer.add(box)
    update = optimizer.publish(0.0)
    assert update is not None
    places.apply(update)
    assert places.loose == 0
    assert places.forward(places.enter({"x": 2, "y": 0}), {"x": 2, "y": 0}) == {"0"}


def test_gaps_are_noticed() -> None:
    optimizer = optimized([parse("x = 1")])
    updates = [optimizer.publish(0.0)]
    for text in ("x = 2", "x = 3"):
        optimizer.add(parse(text).boxes[0])
        updates.append(optimizer.publish(0.0))
    first, second, third = (update for update in updates if update is not None)
    places = Placements(Tree())
    assert places.apply(first)
    with pytest.raises(UpdateGap, match="follows"):
        places.apply(third)
    assert places.tree.version == first.version
    assert not places.apply(first), "old news"
    places.apply(second)
    broken = Optimizer(apply(Tree(), first), term=Term(1)).publish(0.0)
    assert broken is not None
    with pytest.raises(UpdateGap, match="follows"):
        places.apply(broken)
    # An update that does not lead where it should: from now on only content counts, until the whole tree comes.
    places.add(parse("x = 2").boxes[0], "a")
    old = places.enter({"x": 2})
    with pytest.raises(UpdateGap, match="not what it should be"):
        places.apply(type(third)(third.base, third.version, (), third.digest))
    assert forward(places.tree, old, places) is None
    assert places.forward(old, {"x": 2}) == {"a"}
    assert places.forward(places.enter({"x": 2}), {"x": 2}) == {"a"}
    assert places.apply(whole(optimizer.tree))
    assert forward(places.tree, places.enter({"x": 2}), places) == {"a"}


def test_the_past_is_forgotten() -> None:
    optimizer, tree = Optimizer(), Tree()
    for number in range(10):
        optimizer.add(parse(f"x = {number}").boxes[0])
        if number > 2:
            optimizer.remove(parse(f"x = {number - 3}").boxes[0])
        update = optimizer.publish(0.0)
        assert update is not None
        tree = apply(tree, update)
    assert tree.size == 3
    assert len(tree.nodes) == 1 + 10
    tree.forget(TreeVersion(Term(0), 9))
    assert tree.known == [TreeVersion(Term(0), 9), TreeVersion(Term(0), 10)]
    assert len(tree.nodes) == 1 + 4
    assert len(tree.children(0, TreeVersion(Term(0), 9))) == 3
    tree.forget(TreeVersion(Term(7), 7))
    assert tree.known == [TreeVersion(Term(0), 10)]
    assert len(tree.nodes) == 1 + 3


@given(st.lists(st.tuples(st.booleans(), filters), max_size=25), st.integers(0, 25))
def test_the_difference_is_followed_step_by_step(steps: list[tuple[bool, Filter]], publish: int) -> None:
    optimizer = Optimizer()
    published = Tree()
    wanted: list[Filter] = []
    for number, (add, new) in enumerate(steps):
        if number == publish:
            update = optimizer.publish(0.0)
            published = apply(published, update) if update is not None else published
        if not add and wanted:
            for box in wanted.pop(len(wanted) // 2).boxes:
                optimizer.remove(box)
        else:
            wanted.append(new)
            for box in new.boxes:
                optimizer.add(box)
        assert optimizer.difference.value == pytest.approx(wdiff(published, optimizer.tree), abs=1e-9)
    update = optimizer.publish(0.0)
    published = apply(published, update) if update is not None else published
    assert wdiff(published, optimizer.tree) == 0
    assert whole(published) == whole(optimizer.tree)


def test_when_an_update_is_due() -> None:
    optimizer = Optimizer(threshold=0.3, patience=10.0)
    assert not optimizer.due(100.0)
    optimizer.add(parse("x = 1").boxes[0])
    assert optimizer.difference.value == pytest.approx(0.5 / 2.5)
    assert not optimizer.due(5.0)
    assert optimizer.due(10.0)
    optimizer.add(parse("x = 2").boxes[0])
    assert optimizer.difference.value == pytest.approx(1 / 3)
    assert optimizer.due(0.0)
    assert optimizer.publish(3.0) is not None
    assert optimizer.publish(3.0) is None
    optimizer.add(parse("y = 2 AND z = 3").boxes[0])
    assert not optimizer.due(12.9)
    assert optimizer.due(13.0)
    optimizer.remove(parse("y = 2 AND z = 3").boxes[0])
    assert not optimizer.due(13.0)
    assert optimizer.publish(13.0) is None, "what came and went is not told"


def test_a_term_follows_what_was_heard() -> None:
    optimizer = optimized([parse("x = 1"), parse("x = 2")])
    update = optimizer.publish(0.0)
    assert update is not None
    replica = apply(Tree(), update)
    with pytest.raises(ValueError, match="cannot follow"):
        Optimizer(replica, term=Term(0))
    successor = Optimizer(replica, parse("x = 2 OR x = 3").boxes, term=Term(1))
    assert successor.due(0.0)
    first = successor.publish(0.0)
    assert first is not None
    assert (first.base, first.version) == (TreeVersion(Term(0), 1), TreeVersion(Term(1), 0))
    places = Placements(apply(Tree(), update))
    tag = places.enter({"x": 2})
    places.add(parse("x = 2").boxes[0], "a")
    assert places.apply(first)
    assert forward(places.tree, tag, places) == {"a"}
    assert match(places.tree, {"x": 1}).steps == ()
