"""The graph of a table, and where its boxes are drawn."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.matching.strategies import filters, trees
from tests.tables.spaces import everyday, rectangle, rectangles

from fieldfare.filters import Filter, FilterTooComplex, parse
from fieldfare.filters.filter import NOTHING
from fieldfare.tables import cover_graph as covergraph
from fieldfare.tables.cover_graph import CoverGraph, Structure, cover_graph
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.graph_layout import Drawing, Edge, Gaps, Size, draw

# Graphs

some = st.lists(st.one_of(rectangles, everyday, filters()), min_size=1, max_size=7)


def graph_of(wanted: list[Filter], structure: Structure = "poset") -> CoverGraph:
    return cover_graph(((filter, None) for filter in wanted), structure)


def reduction(wanted: tuple[Filter, ...]) -> set[Edge]:
    """Straight from the definition: covers with nothing in between; of two that cover each other the first is above."""

    def above(a: int, b: int) -> bool:
        return a != b and wanted[a].covers(wanted[b]) and (a < b or not wanted[b].covers(wanted[a]))

    places = range(len(wanted))
    return {
        (a, b)
        for a, b in itertools.permutations(places, 2)
        if above(a, b) and not any(above(a, c) and above(c, b) for c in places)
    }


@few(50)
@given(some)
def test_the_edges_are_the_transitive_reduction(wanted: list[Filter]) -> None:
    graph = graph_of(wanted)
    assert set(graph.edges) == reduction(graph.filters)
    assert len(set(graph.edges)) == len(graph.edges)


@few(50)
@given(some)
def test_a_forest_has_the_same_roots_and_one_cover_for_each_other_filter(wanted: list[Filter]) -> None:
    poset, forest = graph_of(wanted), graph_of(wanted, "forest")
    assert [forest.filters[place] for place in forest.roots] == [poset.filters[place] for place in poset.roots]
    assert len(forest.edges) == len(forest.filters) - len(forest.roots)
    assert all(forest.filters[upper].covers(forest.filters[lower]) for upper, lower in forest.edges)


@given(st.lists(st.one_of(rectangles, everyday), min_size=1, max_size=12))
def test_roots_are_the_minimal_cover(wanted: list[Filter]) -> None:
    graph = graph_of(wanted)
    assert {graph.filters[place] for place in graph.roots} == set(minimal_cover(wanted))


@few(50)
@given(some)
def test_mergers_are_all_pairs_of_roots_that_merge(wanted: list[Filter]) -> None:
    graph = graph_of(wanted)

    def merged(a: Filter, b: Filter) -> Filter | None:
        try:
            return a.merge(b)
        except FilterTooComplex:
            return None

    pairs = itertools.combinations(graph.roots, 2)
    expected = {(a, b): found for a, b in pairs if (found := merged(graph.filters[a], graph.filters[b])) is not None}
    assert {(one.first, one.second): one.filter for one in graph.mergers} == expected


@given(wanted=st.lists(st.one_of(rectangles, everyday, filters()), min_size=1, max_size=6), tree=trees)
def test_an_event_lights_up_what_it_matches(wanted: list[Filter], tree: dict[str, object]) -> None:
    for structure in ("poset", "forest"):
        graph = graph_of(wanted, structure)
        assert graph.matching(tree) == [place for place, filter in enumerate(graph.filters) if filter.matches(tree)]


def test_filters_that_come_twice_are_one_node() -> None:
    pairs = [
        (parse("x < 9"), "ana"),
        (parse("x < 5"), None),
        (parse("NOT x >= 9 AND x IS NUMBER AND x IS NOT NAN"), "ben"),
        (parse("x < 9"), "ana"),
    ]
    graph = cover_graph(pairs)
    assert graph.filters == (parse("x < 9"), parse("x < 5"))
    assert graph.interfaces == (("ana", "ben"), ())
    assert graph.edges == ((0, 1),)


def test_among_very_many_roots_no_mergers_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(covergraph, "MOST_ROOTS", 2)
    assert graph_of([parse(f"x = {number}") for number in range(2)]).complete
    graph = graph_of([parse(f"x = {number}") for number in range(3)])
    assert (graph.complete, graph.mergers) == (False, ())


def test_what_nothing_matches_has_no_place() -> None:
    with pytest.raises(ValueError, match="no event"):
        graph_of([NOTHING])


# Drawings


@st.composite
def dags(draw: st.DrawFn) -> tuple[list[Size], list[Edge]]:
    count = draw(st.integers(1, 14))
    sizes = draw(st.lists(st.builds(Size, st.integers(10, 90), st.integers(10, 40)), min_size=count, max_size=count))
    pairs = list(itertools.combinations(range(count), 2))
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=25)) if pairs else []
    names = draw(st.permutations(range(count)))
    return sizes, [(names[upper], names[lower]) for upper, lower in edges]


def overlap(drawing: Drawing, sizes: list[Size], a: int, b: int, gap: float) -> bool:
    (x, y), (u, v) = drawing.corners[a], drawing.corners[b]
    aside = x + sizes[a].width + gap <= u + 0.1 or u + sizes[b].width + gap <= x + 0.1
    return not aside and not (y + sizes[a].height <= v + 0.1 or v + sizes[b].height <= y + 0.1)


@given(dags())
def test_boxes_keep_their_distance_and_edges_lead_downwards(dag: tuple[list[Size], list[Edge]]) -> None:
    sizes, edges = dag
    drawing = draw(sizes, edges)
    for a, b in itertools.combinations(range(len(sizes)), 2):
        assert not overlap(drawing, sizes, a, b, Gaps().bend)
    for (upper, lower), route in zip(edges, drawing.routes, strict=True):
        assert route[0].y == drawing.corners[upper].y + sizes[upper].height
        assert route[-1].y == drawing.corners[lower].y
        assert all(start.y <= end.y for start, end in itertools.pairwise(route))
        assert abs(route[0].x - drawing.corners[upper].x - sizes[upper].width / 2) < 0.1
    for corner, size in zip(drawing.corners, sizes, strict=True):
        assert 0 <= corner.x <= drawing.size.width - size.width + 0.1
        assert 0 <= corner.y <= drawing.size.height - size.height + 0.1


@given(dags(), st.lists(st.tuples(st.integers(0, 13), st.integers(0, 13)), max_size=5))
def test_the_same_graph_gives_the_same_drawing(dag: tuple[list[Size], list[Edge]], links: list[Edge]) -> None:
    sizes, edges = dag
    within = [(a, b) for a, b in links if max(a, b) < len(sizes)]
    assert draw(sizes, edges, links=within) == draw(list(sizes), list(edges), links=within)


def crossings(drawing: Drawing, edges: list[Edge]) -> int:
    """Pairs of lines between the same two layers that change sides."""
    lines = [(a, b) for route in drawing.routes for a, b in itertools.pairwise(route)]
    return sum(
        (a.x - c.x) * (b.x - d.x) < 0 for (a, b), (c, d) in itertools.combinations(lines, 2) if (a.y, b.y) == (c.y, d.y)
    )


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20))
def test_a_forest_is_drawn_without_crossings(parents: list[int]) -> None:
    edges = [(parent % (child + 1), child + 1) for child, parent in enumerate(parents) if parent % 5]
    drawing = draw([Size(30, 20)] * (len(parents) + 1), edges)
    assert crossings(drawing, edges) == 0


def test_crossings_that_need_not_be_are_not() -> None:
    drawing = draw([Size(30, 20)] * 6, [(0, 5), (1, 4), (2, 3), (0, 4), (1, 3)])
    assert crossings(drawing, []) == 0


def test_a_single_child_hangs_straight_below() -> None:
    drawing = draw([Size(100, 20), Size(30, 20), Size(50, 20)], [(0, 1), (1, 2)])
    centres = {corner.x + width / 2 for corner, width in zip(drawing.corners, (100, 30, 50), strict=True)}
    assert centres == {50}


def test_parts_are_set_in_lines_and_linked_ones_side_by_side() -> None:
    drawing = draw([Size(100, 50)] * 20, [])
    assert len({corner.y for corner in drawing.corners}) > 2
    assert 0.7 < drawing.size.width / drawing.size.height < 4
    linked = draw([Size(100, 50)] * 20, [], links=[(0, 19)])
    assert linked.corners[19] == drawing.corners[1]


def test_a_cycle_is_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        draw([Size(10, 10)] * 3, [(0, 1), (1, 2), (2, 1)])


def test_a_large_table_is_drawn_in_time() -> None:
    dice = random.Random(1)
    graph = graph_of([rectangle(dice, 100) for _ in range(250)])
    drawing = draw([Size(120, 40)] * len(graph.filters), graph.edges)
    assert len(drawing.routes) == len(graph.edges) > 250


def test_nothing_is_drawn_as_nothing() -> None:
    assert draw([], []) == Drawing((), (), Size(0, 0))
