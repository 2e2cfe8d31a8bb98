"""Correlations of Sigma as patterns, beside a slow reader that looks through a sliding window after every event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

import fieldfare as ff
from fieldfare.filters.errors import FilterDocumentError
from fieldfare.filters.languages import sigma
from fieldfare.patterns import Detector, Pattern, parse_pattern
from fieldfare.patterns.bounds import Bounds, check
from fieldfare.patterns.sigma import Rules
from fieldfare.patterns.stamps import SECOND, Occurrence

KINDS = "abc"
BASE = "".join(f"name: {kind}\ndetection: {{s: {{kind|contains: {kind}}}, condition: s}}\n---\n" for kind in KINDS)
SPAN = 5
"""seconds of a window"""
Happened = tuple[int, Mapping[str, Any]]


def correlation(text: str, base: str = BASE) -> Pattern:
    """The pattern of the last rule of a text."""
    rules = list(sigma.documents(f"{base}name: found\ncorrelation: {{{text}}}"))
    return Rules(rules).pattern("found")


def detected(pattern: Pattern, events: Sequence[Happened]) -> list[int]:
    """Places of the events with which the pattern is detected."""
    detector = Detector({"found": pattern})
    found = []
    for place, (second, event) in enumerate(events):
        time = second * SECOND + place  # as in a node: no two events at the same time
        found += [place for _ in detector.step([Occurrence(time, time, ff.Event(event))])]
    return found


def expected(events: Sequence[Happened], kind: str, rules: str, least: int, group: Sequence[str]) -> list[int]:
    """The same by the words of the specification: windows that slide, each event in one detection at most."""
    found: list[int] = []
    kept: dict[tuple[Any, ...], list[tuple[int, Mapping[str, Any]]]] = {}
    for place, (second, event) in enumerate(events):
        if not any(rule in event["kind"] for rule in rules) or any(field not in event for field in group):
            continue
        key = tuple(event[field] for field in group)
        window = [one for one in kept.get(key, []) if second * SECOND + place - one[0] <= SPAN * SECOND]
        window.append((second * SECOND + place, event))
        kept[key] = window
        if holds(kind, [one for _, one in window], rules, least):
            found.append(place)
            kept[key] = []
    return found


def holds(kind: str, window: Sequence[Mapping[str, Any]], rules: str, least: int) -> bool:
    if kind == "event_count":
        return len(window) >= least
    if kind == "value_count":
        return len({one["v"] for one in window if one.get("v") is not None}) >= least
    if kind == "temporal":
        return sum(any(rule in one["kind"] for one in window) for rule in rules) >= least
    reached: set[tuple[int, int]] = {(0, 0)}  # the next rule to look at, and how many were found
    for one in window:
        fits = [at for at, rule in enumerate(rules) if rule in one["kind"]]
        reached |= {(at + 1, count + 1) for start, count in reached for at in fits if at >= start}
    return max(count for _, count in reached) >= least


events = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.fixed_dictionaries(
            {"kind": st.sampled_from(["a", "b", "c", "ab", "x"])},
            optional={"u": st.integers(0, 1), "v": st.sampled_from([None, 1, 2, 3])},
        ),
    ),
    max_size=14,
).map(lambda steps: [(sum(step for step, _ in steps[: n + 1]), event) for n, (_, event) in enumerate(steps)])


@few(30)
@given(
    events,
    st.sampled_from(["event_count", "value_count", "temporal", "temporal_ordered"]),
    st.sampled_from(["a", "ab", "ba", "abc"]),
    st.integers(1, 3),
    st.sampled_from([[], ["u"]]),
)
def test_patterns_are_windows_that_slide(
    events: list[Happened], kind: str, rules: str, least: int, group: list[str]
) -> None:
    if kind.startswith("temporal"):
        least = min(least, len(rules))
    field = "field: v, " if kind == "value_count" else ""
    found = correlation(
        f"type: {kind}, rules: [{', '.join(rules)}], group-by: {group}, timespan: {SPAN}s,"
        f" condition: {{{field}gte: {least}}}"
    )
    check(found, Bounds())
    assert detected(found, events) == expected(events, kind, rules, least, group)
    again = parse_pattern(found.text)
    assert again.text == found.text
    assert detected(again, events) == detected(found, events)


@few(10)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ab"), st.integers(0, 1)), max_size=14),
    st.sampled_from(["temporal", "temporal_ordered"]),
)
def test_fields_with_other_names_in_other_rules(steps: list[tuple[int, str, int]], kind: str) -> None:
    """Each event that begins a story is found with the first event of the other rule that fits."""
    events = [(sum(one[0] for one in steps[: n + 1]), kind, v) for n, (_, kind, v) in enumerate(steps)]
    found = correlation(
        f"type: {kind}, rules: [a, b], group-by: [ip], timespan: {SPAN}s, aliases: {{ip: {{a: source, b: target.ip}}}}"
    )
    happened: list[Happened] = [
        (second, {"kind": kind, "source": v} if kind == "a" else {"kind": kind, "target": {"ip": v}})
        for second, kind, v in events
    ]
    wanted = []
    for place, (second, one, value) in enumerate(events):
        for before in range(place):
            first, other, same = events[before]
            between = [e for e in events[before + 1 : place] if e[1] == one and e[2] == value]
            near = (second - first) * SECOND + place - before <= SPAN * SECOND
            if near and other != one and same == value and not between and (kind == "temporal" or one == "b"):
                wanted.append(place)
    assert detected(found, happened) == wanted


def test_a_correlation_of_correlations_asks_for_composite_events() -> None:
    rules = Rules(
        sigma.documents(
            BASE + "name: many\nid: 1-2\ncorrelation: {type: event_count, rules: [a], group-by: [type, u.name],"
            " timespan: 1h, condition: {gt: 1}}\n---\n"
            "name: both\ncorrelation: {type: temporal_ordered, rules: [1-2, b], group-by: [u.name], timespan: 1h}"
        )
    )
    many, both = rules.pattern("many"), rules.pattern("both")
    assert both.filters["rule_1"].matches({"pattern": "many"})
    assert [one.text for one in both.conditions] == ["b.u.name = rule_1.u_name"]
    detector = Detector({"many": many, "both": both})
    found = detector.step([
        Occurrence(time, time, ff.Event({"kind": "a", "type": "t", "u": {"name": "ana"}})) for time in (1, 2)
    ])  # fmt: skip
    inner = detector.event(found[0])
    assert (inner["u_name"], inner["group_type"], inner["pattern"]) == ("ana", "t", "many")
    assert (
        detector.step([Occurrence(3, 3, inner), Occurrence(4, 4, ff.Event({"kind": "b", "u": {"name": "ben"}}))]) == []
    )
    assert len(detector.step([Occurrence(5, 5, ff.Event({"kind": "b", "u": {"name": "ana"}}))])) == 1
    assert rules.referred() == {"a", "b", "many", "1-2"}


def test_names_that_are_words_of_the_language_or_ids() -> None:
    base = BASE.replace("name: a", "name: within").replace("name: b", "id: 0e95725d-7320\nname: T1")
    found = correlation("type: temporal, rules: [within, 0e95725d-7320, T1, c], timespan: 1m", base)
    assert found.names == ["rule_1", "rule_2", "rule_3", "c"]
    assert parse_pattern(found.text).text == found.text


COUNT = "type: event_count, rules: [a], timespan: 1m"
REFUSED = {
    f"{COUNT}, condition: {{lte: 3}}": "/correlation/condition/lte: only the end of a window tells an upper bound",
    f"{COUNT}, condition: {{gte: 3, lt: 9}}": "/correlation/condition/lt: only the end of a window",
    f"{COUNT}, condition: {{eq: 3}}": "/correlation/condition/eq: only the end of a window",
    f"{COUNT}, condition: {{gte: many}}": "/correlation/condition/gte: expected gt, gte, ",
    f"{COUNT}, condition: {{}}": "/correlation/condition: expected a count",
    f"{COUNT}, condition: {{gt: -1}}": "/correlation/condition: a count is between 1 and 5000 here, not 0",
    f"{COUNT}, gap: 1m": "/correlation/gap: a correlation has no such key",
    COUNT: "/correlation/condition: expected a map",
    "type: value_sum, rules: [a], timespan: 1m": "/correlation/type: value_sum: a pattern cannot add up",
    "type: near, rules: [a], timespan: 1m": "/correlation/type: expected event_count, ",
    "type: temporal, timespan: 1m": "/correlation/rules: there are no rules",
    "type: temporal, rules: [a, d], timespan: 1m": "/correlation/rules/1: no rule has the name or id 'd'",
    "type: temporal, rules: [a], timespan: 1M": "/correlation/timespan: expected a time such as 10m",
    "type: temporal, rules: [a, b], timespan: 1m, condition: {gte: 3}": "a count is between 1 and 2 here, not 3",
    "type: temporal, rules: [a], timespan: 1m, aliases: {x: y}": "/correlation/aliases: expected a map of fields",
    "type: value_count, rules: [a], timespan: 1m, condition: {gte: 3}": "/correlation/condition/field: value_count",
    "type: value_count, rules: [a], timespan: 1m, condition: {field: v, gte: 51}": "between 1 and 50 here, not 51",
    "type: event_count, rules: [a, b], timespan: 1m, group-by: [x], aliases: {x: {a: y}}, condition: {gte: 3}": (
        "/correlation/group-by: fields with several names, y and x, can only be compared in temporal_ordered"
    ),
}


@pytest.mark.parametrize("text", REFUSED, ids=list(REFUSED))
def test_what_no_pattern_can_express_is_refused_by_name(text: str) -> None:
    with pytest.raises(FilterDocumentError) as refused:
        correlation(text)
    assert REFUSED[text] in str(refused.value)


def test_a_group_that_an_inner_correlation_does_not_have() -> None:
    inner = "name: many\ncorrelation: {type: event_count, rules: [a], timespan: 1h, condition: {gt: 1}}\n---\n"
    with pytest.raises(FilterDocumentError, match="many does not group by u"):
        correlation("type: temporal, rules: [many, b], group-by: [u], timespan: 1m", BASE + inner)
    with pytest.raises(FilterDocumentError, match="there is no correlation"):
        Rules(sigma.documents(BASE)).pattern("a")


def test_a_schema_names_the_fields() -> None:
    schema = sigma.LogSchema.read('fields = {User = "user.name", Host = "host.name"}')
    text = BASE + (
        "name: found\ncorrelation: {type: value_count, rules: [a], group-by: [User], timespan: 1m,"
        " condition: {field: Host, gte: 2}}"
    )
    found = Rules(sigma.documents(text), schema).pattern("found")
    assert found.keys == ("user.name",)
    assert [one.text for one in found.conditions] == ["NOT (value_2.host.name = value_1.host.name)"]
