"""A tag read in one go is the tag decoded and walked."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.routing.prefix.samples import EVENTS, all_filters, limits, optimized

from fieldfare.filters.filter import Filter
from fieldfare.routing.prefix.fpt import Fpt, decode, encode
from fieldfare.routing.prefix.places import Places
from fieldfare.routing.prefix.tree import Term, Tree, Version

LINKS = ("a", "b", "c")


def places_of(first: Sequence[Filter], then: Sequence[Filter]) -> tuple[Places, list[Places]]:
    """A broker that has two versions of a tree, and two where events enter, one with the older."""
    optimizer = optimized(first)
    later, earlier = Places(Tree()), Places(Tree())
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


def in_two_steps(places: Places, data: bytes) -> set[str] | None:
    try:
        return places.read(decode(data))
    except ValueError:
        return None


def in_one_go(places: Places, data: bytes) -> set[str] | None:
    try:
        return places.read_bytes(data)
    except ValueError:
        return None


def assert_same(places: Places, data: bytes) -> None:
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
        tags = [encode(entry.enter(event, limit)) for event in EVENTS[::7]]
        for tag in tags:
            assert in_one_go(reader, tag) == in_two_steps(reader, tag)
            assert_same(reader, tag[:-1])
        tag = data.draw(st.sampled_from(tags))
        place = data.draw(st.integers(0, len(tag)))
        spoiled = tag[:place] + data.draw(st.binary(max_size=3)) + tag[place + data.draw(st.integers(0, 2)) :]
        assert_same(reader, spoiled)


def test_a_long_name_of_an_optimizer() -> None:
    tag = Fpt(Version(Term(1, "ö" * 100), 3), 2, None, ((1, 0), (1, 300)))
    assert decode(encode(tag)) == tag
