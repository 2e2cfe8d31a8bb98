"""A tag read in one go is the tag decoded and walked."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.prefix.samples import EVENTS, all_filters, limits, optimized
from tools.samples import FILTERS as RANGES
from tools.samples import UNIVERSE as POINTS

from fieldfare.filters import parse
from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.routing.prefix import flat_tree
from fieldfare.routing.prefix.optimizer import Optimizer
from fieldfare.routing.prefix.placements import Placements
from fieldfare.routing.prefix.tag import Tag, decode, encode
from fieldfare.routing.prefix.tree import Term, Tree, TreeVersion

LINKS = ("a", "b", "c")


def places_of(first: Sequence[Filter], then: Sequence[Filter]) -> tuple[Placements, list[Placements]]:
    """A broker that has two versions of a tree, and two where events enter, one with the older."""
    optimizer = optimized(first)
    later, earlier = Placements(Tree(), large=0), Placements(Tree(), large=0)
    update = optimizer.whole(0.0)[1]
    for one in (later, earlier):
        one.apply(update)
    for number, filter in enumerate((*first, *then)):
        for box in filter.boxes:
            later.add(box, LINKS[number % len(LINKS)])
            if number >= len(first):
                optimizer.add(box)
    news = optimizer.publish(1.0)
    if news is not None:
        later.apply(news)
    return later, [later, earlier]


def in_two_steps(places: Placements, data: bytes) -> set[str] | None:
    try:
        return places.read(decode(data))
    except ValueError:
        return None


def in_one_go(places: Placements, data: bytes) -> set[str] | None:
    try:
        return places.read_bytes(data)
    except ValueError:
        return None


def assert_same(places: Placements, data: bytes) -> None:
    """When all are found nobody reads the rest, which may be spoiled."""
    found, expected = in_one_go(places, data), in_two_steps(places, data)
    assert found == expected or (expected is None and found == set(places.interfaces))


@settings(max_examples=40)
@given(st.lists(all_filters, max_size=6), st.lists(all_filters, max_size=4), limits, st.data())
def test_reading_in_one_go(
    first: Sequence[Filter], then: Sequence[Filter], limit: int | None, data: st.DataObject
) -> None:
    reader, entries = places_of(first, then)
    for entry in entries:
        tags = [entry.write(event, limit) for event in EVENTS[::7]]
        assert tags == [encode(entry.enter(event, limit)) for event in EVENTS[::7]]
        for tag in tags:
            assert in_one_go(reader, tag) == in_two_steps(reader, tag)
            assert_same(reader, tag[:-1])
        tag = data.draw(st.sampled_from(tags))
        place = data.draw(st.integers(0, len(tag)))
        spoiled = tag[:place] + data.draw(st.binary(max_size=3)) + tag[place + data.draw(st.integers(0, 2)) :]
        assert_same(reader, spoiled)


def test_a_tag_of_the_future_is_unreadable() -> None:
    reader, [entry, _] = places_of([], [parse("x < 3")])
    stamp = entry.write(EVENTS[0], None)[:3]
    future = stamp + b"\x9a\x99\xc1\x01" + b"\x00"  # since version 3165338, no limit
    assert in_one_go(reader, future) is in_two_steps(reader, future) is None


def test_arrays_are_made_anew_when_most_of_them_is_waste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Filters come and go for a long time, from interfaces of which there are too many for bits now and then."""
    monkeypatch.setattr(flat_tree, "SPARE", 20)
    dice, optimizer, places = Random(1), Optimizer(), Placements(Tree(), large=0)
    boxes = [box for filter in RANGES for box in filter.boxes]
    status: list[tuple[Branch, str]] = []
    elsewhere: list[Branch] = []
    interfaces, most = [f"i{number}" for number in range(90)], 0
    for turn in range(120):
        for _ in range(dice.randrange(16)):
            one = dice.choice(boxes), dice.choice(interfaces[: 90 if turn % 40 < 25 else 5])
            status.append(one)
            places.add(*one)
            optimizer.add(one[0])
            elsewhere.append(dice.choice(boxes))
            optimizer.add(elsewhere[-1])
        while status and len(status) > (200 if turn % 40 < 25 else 6):
            one = status.pop(dice.randrange(len(status)))
            places.remove(*one)
            optimizer.remove(one[0])
            optimizer.remove(elsewhere.pop(dice.randrange(len(elsewhere))))
        most = max(most, len(places.interfaces))
        update = optimizer.publish(0.0)
        if update is not None:
            places.apply(update)
        for event in POINTS:
            tag = places.write(event)
            assert tag == encode(places.enter(event))
            wanted = {interface for box, interface in status if Filter([box]).matches(event)}
            assert places.read_bytes(tag) == places.read(decode(tag)) == wanted
    assert places._entry.flat(places.tree).generation >= 3
    assert most > flat_tree.InterfaceMasks.MOST


def test_nodes_at_which_nobody_stands_have_masks() -> None:
    """The kernel does not look where arrays end."""
    optimizer, places = Optimizer(boxes=parse("x = 0").boxes), Placements(Tree(), large=0)
    for number in range(1, 300):
        places.apply(optimizer.whole(0.0)[1] if number == 1 else optimizer.publish(0.0) or optimizer.whole(0.0)[1])
        assert places.read_bytes(places.write({"x": number - 1})) == set()
        assert len(places._masks.values) >= len(places._entry.flat(places.tree).rows) > places.tree.size
        (box,) = parse(f"x = {number}").boxes
        optimizer.add(box)


def test_a_long_name_of_an_optimizer() -> None:
    tag = Tag(TreeVersion(Term(1, "ö" * 100), 3), 2, None, ((1, 0), (1, 300)))
    assert decode(encode(tag)) == tag
