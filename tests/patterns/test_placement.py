"""The five policies: each finds the best node by its own measure, and uses detectors again as it says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.filters import parse
from fieldfare.patterns import parse_pattern
from fieldfare.patterns.placement import (
    POLICIES,
    Hosted,
    Registry,
    Stand,
    Statistics,
    apart,
    better_node,
    place,
    with_load,
)

LINE = "abcde"
TEXT = "a: [n = 'A'] b: [n = 'B'] c: [n = 'C'] (a followed by b followed by c) within 1 hour"
PREFIX = "x: [n = 'A'] y: [n = 'B'] (x followed by y) within 1 hour"


def line(nodes: str = LINE) -> dict[str, dict[str, float]]:
    return {one: {other: float(abs(i - j)) for j, other in enumerate(nodes)} for i, one in enumerate(nodes)}


def statistics(nodes: str = LINE) -> Statistics:
    rates = {parse("n = 'A'"): {"a": 9.0}, parse("n = 'B'"): {"a": 8.0}, parse("n = 'C'"): {"b": 1.0}}
    return Statistics(line(nodes), rates, load={node: float(i == 0) for i, node in enumerate(nodes)})


def nodes(stands: tuple[Stand, ...]) -> list[list[tuple[str, bool]]]:
    return [[(one.node, one.new) for one in stand.all()] for stand in stands]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("latency", [[("e", True)]]),  # at the subscriber
        ("bandwidth", [[("a", True)]]),  # at the publishers
        ("impact", [[("b", True)]]),  # anywhere but at the busy a
        ("load", [[("c", True), ("b", True)]]),  # in two parts, on two nodes
        ("reliability", [[("a", True)], [("e", True)]]),
    ],
)
def test_a_new_pattern(policy: str, expected: object) -> None:
    assert nodes(place(parse_pattern(TEXT), "e", POLICIES[policy], Registry(), statistics())) == expected


@pytest.mark.parametrize(
    ("policy", "hosted", "expected"),
    [
        ("latency", "a", [("e", True)]),  # too far away
        ("latency", "d", [("d", False)]),  # a link away
        ("bandwidth", "c", [("c", False)]),
        ("impact", "a", [("a", False)]),
        ("load", "a", [("a", False)]),
    ],
)
def test_a_pattern_that_is_detected_already(policy: str, hosted: str, expected: object) -> None:
    (first,) = place(parse_pattern(TEXT), "e", POLICIES["bandwidth"], Registry(), statistics())
    registry = Registry().used(Hosted(first.recipe.type, hosted), "ana")
    written = parse_pattern(TEXT.replace("a:", "other:").replace("(a", "(other"))  # in other words
    assert nodes(place(written, "e", POLICIES[policy], registry, statistics())) == [expected]


def test_two_detectors_or_two_new_ones() -> None:
    (one,) = place(parse_pattern(TEXT), "e", POLICIES["bandwidth"], Registry(), statistics())
    registry = Registry().used(Hosted(one.recipe.type, "c"), "ana")
    again = place(parse_pattern(TEXT), "e", POLICIES["reliability"], registry, statistics())
    assert all(stand.new for stand in again)
    registry = registry.used(Hosted(one.recipe.type, "e"), "ana")
    again = place(parse_pattern(TEXT), "e", POLICIES["reliability"], registry, statistics())
    assert nodes(again) == [[("e", False)], [("c", False)]]


def test_a_part_is_used_again_by_those_who_look_for_parts() -> None:
    (part,) = place(parse_pattern(PREFIX), "a", POLICIES["bandwidth"], Registry(), statistics())
    registry = Registry().with_stand(part, "ana")
    found = {
        name: place(parse_pattern(TEXT), "e", policy, registry, statistics())[0] for name, policy in POLICIES.items()
    }
    assert {name: [one.new for one in stand.all()] for name, stand in found.items()} == {
        "latency": [True], "bandwidth": [True, False], "impact": [True, False], "load": [True, False],
        "reliability": [True],
    }  # fmt: skip
    stand = found["bandwidth"]
    assert str(stand.recipe.runs.filters["c1"]) == f"detector = 'a' AND type = '{part.recipe.type}'"
    registry = registry.with_stand(stand, "bob")
    registry, ended = registry.left("ana")
    assert ended == []  # bob's detector waits for the part
    registry, ended = registry.left("bob")
    assert set(ended) == {stand.hosted, part.hosted}
    assert registry == Registry()


def test_copies_are_on_ways_without_a_common_node() -> None:
    away = line()
    assert apart("a", "e", "c", away)
    assert not apart("a", "b", "c", away)
    assert apart("a", "e", "e", away)
    stands = place(parse_pattern(TEXT), "c", POLICIES["reliability"], Registry(), statistics())
    assert [one.node for one in stands] == ["a", "c"]
    alone = Statistics({"a": {"a": 0.0}})
    assert nodes(place(parse_pattern(TEXT), "a", POLICIES["reliability"], Registry(), alone)) == [[("a", True)]] * 2


def test_detectors_move_only_for_a_clear_gain() -> None:
    known, policy = statistics(), POLICIES["bandwidth"]
    (stand,) = place(parse_pattern(TEXT), "e", policy, Registry(), known)
    assert better_node(stand, "e", policy, known) is None
    rates = {filter: dict.fromkeys("c", rate) for filter, flow in known.rates.items() for rate in flow.values()}
    moved = Statistics(known.distance, rates)
    assert better_node(stand, "e", policy, moved) == "c"
    slightly = moved._replace(rates={filter: {"a": 1.0, "b": 1.1} for filter in rates})
    assert better_node(stand, "a", policy, slightly) is None
    (light,) = place(parse_pattern(TEXT), "e", POLICIES["impact"], Registry(), known)
    assert better_node(light, "e", POLICIES["impact"], with_load(known, [light])) is None


@given(
    st.dictionaries(st.sampled_from("ABC"), st.dictionaries(st.sampled_from(LINE), st.floats(0, 9)), min_size=3),
    st.sampled_from(LINE),
)
def test_least_traffic_is_least_traffic(flows: dict[str, dict[str, float]], consumer: str) -> None:
    rates = {parse(f"n = '{name}'"): flow for name, flow in flows.items()}
    known = Statistics(line(), rates)
    (stand,) = place(parse_pattern(TEXT), consumer, POLICIES["bandwidth"], Registry(), known)
    output = min(sum(flow.values()) for flow in flows.values())

    def traffic(node: str) -> float:
        into = sum(rate * known.distance[node][at] for flow in flows.values() for at, rate in flow.items())
        return into + output * known.distance[node][consumer]

    assert traffic(stand.node) <= min(map(traffic, LINE)) * (1 + 1e-9)
