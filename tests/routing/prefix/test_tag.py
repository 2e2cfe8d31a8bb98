"""Tags on a wire, and tags from the engine."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tools.prefix.samples import EVENTS, all_filters, limits, optimized

from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.routing.prefix.selection import match
from fieldfare.routing.prefix.tag import Step, Tag, decode, encode
from fieldfare.routing.prefix.tagger import Tagger
from fieldfare.routing.prefix.tree import Term, Tree, TreeVersion
from fieldfare.routing.prefix.updates import apply

terms = st.builds(Term, st.integers(-1, 300), st.text(max_size=9))
versions = st.builds(TreeVersion, terms, st.integers(0, 1 << 40))


@st.composite
def steps(draw: st.DrawFn) -> tuple[Step, ...]:
    """Any preorder: each step at most one deeper than the one before, siblings with growing places."""
    found: list[Step] = []
    places: list[int] = []
    for up, skip in draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200)), max_size=20)):
        depth = max(1, len(places) + 1 - up)
        if depth > len(places):
            places.append(-1)
        del places[depth:]
        places[-1] += 1 + skip
        found.append((depth, places[-1]))
    return tuple(found)


@given(st.integers(0, 1 << 40), versions, limits, steps())
def test_wire_form(since: int, version: TreeVersion, limit: int | None, way: tuple[Step, ...]) -> None:
    tag = Tag(version, since, limit, way)
    data = encode(tag)
    assert decode(data) == tag
    header = len(encode(tag._replace(steps=())))
    assert header + len(way) <= len(data) <= header + sum(1 if place < 32 else 2 for _, place in way)


@given(versions, limits, steps(), st.data())
def test_what_is_cut_off_is_no_tag(
    version: TreeVersion, limit: int | None, way: tuple[Step, ...], data: st.DataObject
) -> None:
    written = encode(Tag(version, version.number, limit, way))
    header = len(encode(Tag(version, version.number, limit, ())))
    cut = data.draw(st.integers(0, len(written) - 1))
    if cut != header:  # a tag without steps is a tag
        with pytest.raises(ValueError, match="cut off"):
            decode(written[:cut])
    if way:
        with pytest.raises(ValueError, match="behind its end"):
            decode(written + b"\0")


@given(st.binary(max_size=30))
def test_any_bytes_are_a_tag_or_none(data: bytes) -> None:
    try:
        tag = decode(data)
    except ValueError:
        return
    assert decode(encode(tag)) == tag


@settings(max_examples=20)
@given(st.lists(all_filters, max_size=8), st.lists(all_filters, max_size=8), limits)
def test_the_engine_makes_the_same_tags(first: Sequence[Filter], then: Sequence[Filter], limit: int | None) -> None:
    """One has all versions of the tree and takes up what is new; the other has the last one, and learns it anew."""
    optimizer = optimized(first)
    entries, followed = (Tagger(large=0), Tagger(large=0)), apply(Tree(), optimizer.whole(0.0)[1])
    for change in (lambda _: None, optimizer.add, optimizer.remove):
        for filter in then:
            for box in filter.boxes:
                change(box)
        update = optimizer.publish(0.0)
        if update is not None:
            followed = apply(followed, update)
        for entry, tree in zip(entries, (followed, optimizer.tree), strict=True):
            for event in EVENTS[::5]:
                tag = match(tree, event, limit)
                assert entry.tag(tree, event, limit) == tag
                assert entry.write(tree, event, limit) == encode(tag)


def test_a_large_tree_goes_to_the_engine_and_a_chain_may_be_long() -> None:
    tree = optimized(parse(f"x < {number}") for number in range(1100)).tree
    tag = Tagger().tag(tree, {"x": -1})
    assert tag == match(tree, {"x": -1})
    assert Tagger().write(tree, {"x": -1}) == encode(tag)
    assert len(tag.steps) == 1100
    assert decode(encode(tag)) == tag
    assert match(tree, {"x": -1}, 3).steps == tag.steps[:3]
