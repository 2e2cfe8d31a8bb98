from __future__ import annotations

import ipaddress
import itertools
import json
import operator
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.events import Event
from fieldfare.filters import FilterTooComplex, parse
from fieldfare.filters.errors import FilterDocumentError
from fieldfare.filters.languages.ruler import patterns as ruler

# The oracle works as Event Ruler does: the event is a list of leaves, each with the places it has in arrays; a pattern
# matches if one leaf can be chosen for each path such that no two of them are in different elements of one array.

Places = dict[tuple[Any, ...], int]
Found = tuple[str, object, Places]


def leaves_of(value: object, path: str, at: tuple[Any, ...], places: Places) -> Iterator[Found]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from leaves_of(item, f"{path}.{name}" if path else name, (*at, name), places)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            inside = {**places, at: index} if isinstance(item, (dict, list)) else places
            yield from leaves_of(item, path, (*at, index), inside)
    else:
        yield path, value, places


def consistent(one: Places, other: Places) -> bool:
    return all(one[array] == other[array] for array in one.keys() & other.keys())


def rules_of(pattern: Mapping[str, Any], path: str = "") -> list[dict[str, list[Any]]]:
    rules: list[dict[str, list[Any]]] = [{}]
    for name, value in pattern.items():
        below = f"{path}.{name}" if path else name
        if name == "$or":
            ways = [rule for alternative in value for rule in rules_of(alternative, path)]
        else:
            ways = rules_of(value, below) if isinstance(value, dict) else [{below: value}]
        rules = [{**rule, **way} for rule in rules for way in ways]
    return rules


def oracle(pattern: Mapping[str, Any], event: dict[str, Any]) -> bool:
    leaves = list(leaves_of(event, "", (), {}))
    return any(rule_holds(rule, leaves) for rule in rules_of(pattern))


def rule_holds(rule: dict[str, list[Any]], leaves: list[Found]) -> bool:
    choices: list[list[Found | str]] = []
    for path, alternatives in rule.items():
        choice: list[Found | str] = [leaf for leaf in leaves if leaf[0] == path and accepts(alternatives, leaf[1])]
        if {"exists": False} in alternatives:
            choice.append(path)
        choices.append(choice)
    return any(chosen_well(chosen, leaves) for chosen in itertools.product(*choices))


def chosen_well(chosen: tuple[Found | str, ...], leaves: list[Found]) -> bool:
    joined: Places = {}
    for leaf in chosen:
        if not isinstance(leaf, str):
            if not consistent(joined, leaf[2]):
                return False
            joined |= leaf[2]
    absent = {path for path in chosen if isinstance(path, str)}
    return not any(path in absent and consistent(joined, places) for path, _, places in leaves)


def accepts(alternatives: list[Any], value: object) -> bool:
    return any(
        accepted(next(iter(item.items())), value) if isinstance(item, dict) else same(item, value)
        for item in alternatives
    )


SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq}


def same(wanted: object, value: object) -> bool:
    return isinstance(wanted, bool) == isinstance(value, bool) and wanted == value


def accepted(operation: tuple[str, Any], value: object) -> bool:
    name, operand = operation
    if isinstance(operand, dict) and name in ("prefix", "suffix"):
        folded = {name: operand["equals-ignore-case"].lower()}
        return isinstance(value, str) and accepts([folded], value.lower())
    match name:
        case "exists":
            return bool(operand)
        case "exactly":
            return bool(value == operand)
        case "prefix":
            return isinstance(value, str) and value.startswith(operand)
        case "suffix":
            return isinstance(value, str) and value.endswith(operand)
        case "equals-ignore-case":
            return isinstance(value, str) and value.lower() == operand.lower()
        case "wildcard":
            tokens = re.findall(r"\\.|.", operand, re.DOTALL)
            regex = "".join(".*" if token == "*" else re.escape(token[-1]) for token in tokens)
            return isinstance(value, str) and re.fullmatch(regex, value, re.DOTALL) is not None
        case "anything-but":
            if isinstance(operand, dict):
                ((inner, texts),) = operand.items()
                return not accepts([{inner: text} for text in (texts if isinstance(texts, list) else [texts])], value)
            return not accepts(operand if isinstance(operand, list) else [operand], value)
        case "numeric":
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return False
            return all(SIGNS[sign](value, number) for sign, number in zip(operand[::2], operand[1::2], strict=True))
        case "cidr":
            try:
                return isinstance(value, str) and ipaddress.ip_address(value) in ipaddress.ip_network(operand)
            except ValueError:
                return False
    raise AssertionError(name)


# Random patterns and events, over so few names and values that they often meet

names = st.sampled_from("abc")
texts = st.sampled_from(["", "a", "b", "ab", "aB", "ba", "a*", "10.0.0.1", "10.9.0.1"])
scalars = st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 2.5]) | texts
events = st.dictionaries(
    names,
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=3,
)

some_texts = st.sampled_from(["a", "b", "ab", "A"])
wildcards = st.sampled_from(["*", "a*", "*b", "a*b", r"a\*", "*a*"])
numbers = st.sampled_from([0, 1, 2])
operations = st.one_of(
    st.builds(lambda flag: {"exists": flag}, st.booleans()),
    st.builds(lambda op, text: {op: text}, st.sampled_from(["prefix", "suffix", "equals-ignore-case"]), texts),
    st.builds(lambda op, text: {op: {"equals-ignore-case": text}}, st.sampled_from(["prefix", "suffix"]), some_texts),
    st.builds(lambda text: {"wildcard": text}, wildcards),
    st.builds(lambda network: {"cidr": network}, st.sampled_from(["10.0.0.0/16", "10.0.0.0/8"])),
    st.builds(lambda sign, number: {"numeric": [sign, number]}, st.sampled_from(["=", "<", "<=", ">", ">="]), numbers),
    st.builds(lambda low, size: {"numeric": [">", low, "<=", low + size]}, numbers, st.sampled_from([1, 2])),
    st.builds(lambda value: {"anything-but": value}, texts | numbers | st.lists(texts, min_size=1, max_size=2)),
    st.builds(
        lambda op, some: {"anything-but": {op: some}},
        st.sampled_from(["prefix", "suffix", "equals-ignore-case"]),
        some_texts | st.lists(some_texts, min_size=1, max_size=2),
    ),
    st.builds(lambda text: {"anything-but": {"wildcard": text}}, wildcards),
)
alternatives = st.lists(scalars | operations, min_size=1, max_size=2)
patterns = st.recursive(
    st.dictionaries(names, alternatives, min_size=1, max_size=2),
    lambda inner: (
        st.dictionaries(names, alternatives | inner, min_size=1, max_size=3)
        | st.builds(lambda either, rest: {**rest, "$or": either}, st.lists(inner, min_size=2, max_size=2), inner)
    ),
    max_leaves=4,
)


def parsed(pattern: dict[str, Any]) -> Any:
    """The filter, or None for a pattern that names a field twice by its `$or`."""
    try:
        return ruler.parse(pattern)
    except FilterDocumentError as error:
        if "already has a condition" not in error.problem:
            raise
        return None
    except FilterTooComplex:
        return None


@given(patterns, st.lists(events, min_size=1, max_size=4))
def test_matches_as_the_oracle_does(pattern: dict[str, Any], given_events: list[dict[str, Any]]) -> None:
    wanted = parsed(pattern)
    if wanted is not None:
        for event in given_events:
            assert wanted.matches(Event(event)) is oracle(pattern, event), (pattern, event, str(wanted))


objects = st.dictionaries(names, st.sampled_from([1, 2, [1, 2], {}, []]), max_size=3)
dense_events = st.dictionaries(
    names,
    st.recursive(
        objects | st.lists(objects, max_size=3),
        lambda inner: st.dictionaries(names, inner, max_size=3) | st.lists(inner, max_size=2),
        max_leaves=6,
    ),
    max_size=3,
)
dense_leaves = st.lists(st.sampled_from([1, 2, {"exists": False}, {"anything-but": 1}]), min_size=1, max_size=2)
dense_objects = st.dictionaries(names, dense_leaves, min_size=1, max_size=2)
dense_patterns = st.dictionaries(
    st.sampled_from("ab"),
    dense_objects | st.dictionaries(names, dense_leaves | dense_objects, min_size=1, max_size=2),
    min_size=1,
)


@given(dense_patterns, st.lists(dense_events, min_size=1, max_size=5))
def test_arrays_of_objects_are_matched_as_the_oracle_does(
    pattern: dict[str, Any], given_events: list[dict[str, Any]]
) -> None:
    wanted = parsed(pattern)
    if wanted is not None:
        for event in given_events:
            assert wanted.matches(event) is oracle(pattern, event), (pattern, event, str(wanted))


@given(patterns | dense_patterns)
def test_a_pattern_survives_the_native_language_and_rendering(pattern: dict[str, Any]) -> None:
    wanted = parsed(pattern)
    if wanted is None:
        return
    assert parse(str(wanted)) == wanted
    try:
        rendered = ruler.render(wanted)
    except ValueError as error:
        if not str(error).startswith("no pattern"):
            raise
        return
    assert ruler.parse(json.dumps(rendered)) == wanted


# Vectors

ORDER: dict[str, Any] = {
    "source": "shop.orders",
    "time": "2026-11-15T09:30:00Z",
    "labels": ["urgent", "gift"],
    "detail": {
        "state": "Shipped",
        "count": 5,
        "weight": 301.8,
        "paid": True,
        "coupon": None,
        "path": "/var/bin/order*.jar",
        "host": "10.0.7.33",
        "host6": "2001:db8::7",
        "notes": [],
        "buyer": {"id": 7},
        "lines": [
            {"sku": "a", "qty": 1, "tags": ["x", "y"]},
            {"sku": "b", "qty": 9, "parts": [{"id": 1, "ok": True}, {"id": 2, "ok": False}]},
        ],
    },
}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"source": ["shop.orders"]}, True),
        ({"source": ["other", "shop.orders"]}, True),
        ({"source": ["shop"]}, False),
        ({"labels": ["gift"]}, True),
        ({"labels": ["cheap"]}, False),
        ({"source": ["shop.orders"], "labels": ["cheap"]}, False),
        ({"detail": {"count": [5.0]}}, True),
        ({"detail": {"count": ["5"]}}, False),
        ({"detail": {"paid": [True]}}, True),
        ({"detail": {"paid": [1]}}, False),
        ({"detail": {"coupon": [None]}}, True),
        ({"detail": {"nowhere": [None]}}, False),
        ({"time": [{"prefix": "2026-11"}]}, True),
        ({"detail": {"count": [{"prefix": "5"}]}}, False),
        ({"detail": {"state": [{"prefix": {"equals-ignore-case": "SHIP"}}]}}, True),
        ({"source": [{"suffix": ".orders"}]}, True),
        ({"source": [{"suffix": ".ORDERS"}]}, False),
        ({"source": [{"suffix": {"equals-ignore-case": ".ORDERS"}}]}, True),
        ({"detail": {"state": [{"equals-ignore-case": "sHIPPED"}]}}, True),
        ({"detail": {"state": [{"exactly": "Shipped"}]}}, True),
        ({"detail": {"path": [{"wildcard": "/*/bin/*.jar"}]}}, True),
        ({"detail": {"path": [{"wildcard": r"*order\*.jar"}]}}, True),
        ({"detail": {"path": [{"wildcard": r"*bin\*.jar"}]}}, False),
        ({"detail": {"state": [{"anything-but": "Draft"}]}}, True),
        ({"detail": {"state": [{"anything-but": ["Draft", "Shipped"]}]}}, False),
        ({"detail": {"count": [{"anything-but": "5"}]}}, True),
        ({"detail": {"count": [{"anything-but": [4, 5]}]}}, False),
        ({"detail": {"coupon": [{"anything-but": "x"}]}}, True),
        ({"detail": {"nowhere": [{"anything-but": "x"}]}}, False),
        ({"labels": [{"anything-but": "gift"}]}, True),
        ({"labels": [{"anything-but": ["gift", "urgent"]}]}, False),
        ({"detail": {"state": [{"anything-but": {"prefix": "Ship"}}]}}, False),
        ({"detail": {"state": [{"anything-but": {"prefix": ["a", "b"]}}]}}, True),
        ({"detail": {"state": [{"anything-but": {"suffix": ["ped", "x"]}}]}}, False),
        ({"detail": {"state": [{"anything-but": {"equals-ignore-case": ["SHIPPED"]}}]}}, False),
        ({"detail": {"path": [{"anything-but": {"wildcard": ["*.class", "*.jar"]}}]}}, False),
        ({"detail": {"count": [{"numeric": [">", 0, "<=", 5]}]}}, True),
        ({"detail": {"count": [{"numeric": ["<=", 5, ">", 5]}, {"numeric": ["<", 10]}]}}, None),
        ({"detail": {"count": [{"numeric": ["<", 5]}]}}, False),
        ({"detail": {"weight": [{"numeric": ["=", 3.018e2]}]}}, True),
        ({"detail": {"state": [{"numeric": [">", 0]}]}}, False),
        ({"detail": {"host": [{"cidr": "10.0.0.0/8"}]}}, True),
        ({"detail": {"host": [{"cidr": "10.0.8.0/24"}]}}, False),
        ({"detail": {"host6": [{"cidr": "2001:db8::/32"}]}}, True),
        ({"detail": {"host6": [{"cidr": "10.0.0.0/8"}]}}, False),
        ({"detail": {"count": [{"exists": True}]}}, True),
        ({"detail": {"coupon": [{"exists": True}]}}, True),
        ({"detail": {"nowhere": [{"exists": True}]}}, False),
        ({"detail": {"nowhere": [{"exists": False}]}}, True),
        ({"detail": {"buyer": [{"exists": True}]}}, False),
        ({"detail": {"buyer": [{"exists": False}]}}, True),
        ({"detail": {"notes": [{"exists": False}]}}, True),
        ({"detail": {"lines": [{"exists": False}]}}, True),
        ({"nowhere": {"at": {"all": [{"exists": False}]}}}, True),
        ({"detail": {"count": ["x", {"exists": False}]}}, False),
        ({"detail": {"nowhere": ["x", {"exists": False}]}}, True),
        # one element of an array for all that is wanted below it
        ({"detail": {"lines": {"sku": ["b"], "qty": [9]}}}, True),
        ({"detail": {"lines": {"sku": ["a"], "qty": [9]}}}, False),
        ({"detail": {"lines": {"tags": ["y"], "sku": ["a"]}}}, True),
        ({"detail": {"lines": {"parts": {"id": [2], "ok": [False]}}}}, True),
        ({"detail": {"lines": {"parts": {"id": [1], "ok": [False]}}}}, False),
        ({"detail": {"lines": {"sku": ["b"], "parts": {"id": [2], "ok": [False]}}}}, True),
        ({"detail": {"lines": {"sku": ["a"], "parts": {"id": [2], "ok": [False]}}}}, False),
        ({"detail": {"lines": {"sku": ["a"], "parts": {"id": [{"exists": False}]}}}}, True),
        ({"detail": {"lines": {"sku": ["b"], "parts": {"id": [{"exists": False}]}}}}, False),
        ({"detail": {"lines": {"parts": {"id": [{"exists": False}]}}}}, False),
        ({"detail": {"lines": {"sku": ["a"]}, "count": [5], "buyer": {"id": [7]}}}, True),
        # $or
        ({"$or": [{"source": ["x"]}, {"detail": {"count": [5]}}]}, True),
        ({"$or": [{"source": ["x"]}, {"detail": {"count": [6]}}]}, False),
        ({"detail": {"paid": [True], "$or": [{"count": [6]}, {"weight": [301.8]}]}}, True),
        ({"$or": [{"source": ["x"]}, {"labels": ["gift"], "$or": [{"x": [1]}, {"time": [{"prefix": "2"}]}]}]}, True),
        ({"detail": {"lines": {"sku": ["a"]}, "$or": [{"lines": {"qty": [9]}}, {"count": [6]}]}}, False),
        ({"detail": {"lines": {"sku": ["b"]}, "$or": [{"lines": {"qty": [9]}}, {"count": [6]}]}}, True),
        # dots
        ({"detail.state": ["Shipped"]}, True),
        ({"detail": {"buyer.id": [7], "lines.sku": ["a"], "lines.qty": [9]}}, False),
    ],
)  # fmt: skip
def test_vectors(pattern: dict[str, Any], expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(FilterDocumentError):
            ruler.parse(pattern)
        return
    wanted = ruler.parse(json.dumps(pattern))
    assert wanted.matches(Event(ORDER)) is wanted.matches(ORDER) is expected
    assert parse(str(wanted)) == wanted == ruler.parse(pattern)
    if "." not in "".join(pattern):
        assert oracle(pattern, ORDER) is expected


def test_names_with_dots_in_the_event() -> None:
    wanted = ruler.parse({"detail": {"state": {"at": [1], "by": ["me"]}}})
    assert wanted.matches({"detail": {"state.at": 1, "state.by": "me"}})
    assert wanted.matches({"detail.state.at": 1, "detail.state.by": "me"})
    assert not wanted.matches({"detail.state.at": 1, "detail.state.by": "you"})


def test_arrays_in_arrays_are_looked_through() -> None:
    event = {"staff": [[{"name": "Ann", "room": 1}, {"name": "Bob", "room": 2}], [{"name": "Cid", "room": 1}]]}
    assert ruler.parse({"staff": {"name": ["Cid"], "room": [1]}}).matches(event)
    assert not ruler.parse({"staff": {"name": ["Cid"], "room": [2]}}).matches(event)


def test_a_timestamp_is_no_string() -> None:
    event = {"time": datetime(2026, 11, 15, tzinfo=UTC)}
    assert not ruler.parse({"time": [{"prefix": "2026"}]}).matches(event)
    assert ruler.parse({"time": [{"exists": True}]}).matches(event)


def test_numbers_are_exact() -> None:
    assert not ruler.parse('{"n": [9007199254740993]}').matches({"n": 9007199254740992})
    assert ruler.parse('{"n": [{"numeric": [">", 9007199254740992]}]}').matches({"n": 9007199254740993})


def test_the_flat_constraints_are_there_for_an_index() -> None:
    wanted = ruler.parse({"detail": {"a": ["x"], "b": ["y"]}})
    assert str(wanted) == ("ANY detail.a = 'x' AND ANY detail.b = 'y' AND detail HAS (ANY a = 'x' AND ANY b = 'y')")


def test_equal_patterns_are_equal_filters() -> None:
    assert ruler.parse({"a": {"b": [1, 2]}, "c": ["x"]}) == ruler.parse({"c": ["x"], "a.b": [2.0, 1]})
    assert ruler.parse({"a": [{"cidr": "10.1.2.3/8"}]}) == ruler.parse({"a": [{"cidr": "10.0.0.0/8"}]})


def test_covering() -> None:
    wide = ruler.parse({"d": {"lines": {"sku": ["a", "b"], "qty": [{"numeric": [">", 0]}]}}})
    narrow = ruler.parse({"d": {"lines": {"sku": ["a"], "qty": [{"numeric": [">", 5]}]}}, "x": [1]})
    assert wide.covers(narrow)
    assert not narrow.covers(wide)
    apart = parse("ANY d.lines.sku = 'a' AND ANY d.lines.qty > 5")
    assert apart.covers(narrow)
    assert not narrow.covers(apart)


@pytest.mark.parametrize(
    ("document", "path", "said"),
    [
        ('{"a": ', "/", "not JSON: Expecting value (line 1, column 7)"),
        ('{"a":\n["b"],\n5}', "/", "not JSON: Expecting property name enclosed in double quotes (line 3, column 1)"),
        (b"\xff", "/", "not JSON"),
        ('{"a": [NaN]}', "/", "NaN"),
        ("[1]", "/", "a pattern is an object"),
        ("{}", "/", "empty"),
        ('{"a": {"b": {}}}', "/a/b", "empty"),
        ('{"a": []}', "/a", "empty"),
        ('{"a": 1}', "/a", "wrap the value in an array: [1]"),
        ('{"a": {"b": null}}', "/a/b", "wrap the value in an array: [null]"),
        ('{"a": [["x"]]}', "/a/0", "expected a string"),
        ('{"a": ["x"], "a": ["y"]}', "/a", "twice"),
        ('{"a": [{"prefix": "x", "prefix": "y"}]}', "/a/0/prefix", "twice"),
        ('{"a": {"b": [1]}, "a.b": [2]}', "/a.b", "already has a condition on a.b"),
        ('{"a": [1], "$or": [{"a": [2]}, {"b": [3]}]}', "/$or", "already has a condition on a"),
        ('{"a/b": {"c~": 1}}', "/a~1b/c~0", "wrap"),
        ('{"": [1]}', "/", "name"),
        ('{"a..b": [1]}', "/a..b", "name"),
        ('{"a": ["x", {"regex": "."}]}', "/a/1/regex", "no operator 'regex'; there are anything-but, cidr, equals-"),
        ('{"a": [{}]}', "/a/0", "one key"),
        ('{"a": [{"prefix": "a", "suffix": "b"}]}', "/a/0", "one key"),
        ('{"a": [{"prefix": 5}]}', "/a/0/prefix", "expected a string, not 5"),
        ('{"a": [{"prefix": ["x"]}]}', "/a/0/prefix", "expected a string"),
        ('{"a": [{"prefix": {"wildcard": "a"}}]}', "/a/0/prefix/wildcard", "equals-ignore-case"),
        ('{"a": [{"wildcard": "a**b"}]}', "/a/0/wildcard", "two in a row"),
        ('{"a": [{"wildcard": "a\\\\b"}]}', "/a/0/wildcard", "backslash"),
        ('{"a": [{"wildcard": "a\\\\"}]}', "/a/0/wildcard", "backslash"),
        ('{"a": [{"anything-but": []}]}', "/a/0/anything-but", "empty"),
        ('{"a": [{"anything-but": {"prefix": []}}]}', "/a/0/anything-but/prefix", "empty"),
        ('{"a": [{"anything-but": {"prefix": ""}}]}', "/a/0/anything-but/prefix", "exclude every string"),
        ('{"a": [{"anything-but": {"numeric": [">", 1]}}]}', "/a/0/anything-but/numeric", "anything-but takes"),
        ('{"a": [{"exists": 1}]}', "/a/0/exists", "true or false"),
        ('{"a": [{"cidr": "10.0.0.0"}]}', "/a/0/cidr", "network such as"),
        ('{"a": [{"cidr": "10.0.0.0/33"}]}', "/a/0/cidr", "network such as"),
        ('{"a": [{"numeric": ["<"]}]}', "/a/0/numeric", "range such as"),
        ('{"a": [{"numeric": ["!", 5]}]}', "/a/0/numeric", "range such as"),
        ('{"a": [{"numeric": ["<", 5, "<", 6]}]}', "/a/0/numeric", "range such as"),
        ('{"a": [{"numeric": ["<", "5"]}]}', "/a/0/numeric", "< needs a number"),
        ('{"a": [{"numeric": ["<", true]}]}', "/a/0/numeric", "< needs a number"),
        ('{"a": [{"numeric": ["<", 1e999]}]}', "/a/0/numeric", "not a number of JSON"),
        ('{"detail": {"price": [{"numeric": [">", 5, "<", 3]}]}}', "/detail/price/0/numeric", "no number is in"),
        ('{"$or": {"a": [1]}}', "/$or", "two or more"),
        ('{"$or": [{"a": [1]}]}', "/$or", "two or more"),
        ('{"$or": [{"a": [1]}, 2]}', "/$or/1", "a pattern is an object"),
        ('{"a": ["\\ud800"]}', "/a/0", "surrogate"),
        ("[" * 100_000, "/", "nested too deeply"),
        ('{"a": [' + "9" * 5000 + "]}", "/", "digits"),
    ],
)  # fmt: skip
def test_errors(document: str | bytes, path: str, said: str) -> None:
    with pytest.raises(FilterDocumentError) as caught:
        ruler.parse(document)
    assert caught.value.path == path
    assert said in caught.value.problem
    assert str(caught.value) == f"at {path}: {caught.value.problem}"


def test_too_many_alternatives() -> None:
    with pytest.raises(FilterTooComplex):
        ruler.parse({f"x{i}": {"$or": [{"a": [1]}, {"b": [2]}]} for i in range(10)})


@pytest.mark.parametrize(
    "pattern",
    [
        {"a": ["x"]},
        {"a": [None, True, False, 1, "x"]},
        {"a": [10**400]},
        {"a": [{"exists": True}], "b": [{"exists": False}]},
        {"a": [{"prefix": "x"}, {"prefix": "y"}]},
        {"a": [{"anything-but": ["x", "y"]}]},
        {"a": [{"anything-but": {"prefix": ["x", "y"]}}]},
        {"a": [{"anything-but": {"suffix": ["x", "y"]}}]},
        {"a": [{"wildcard": r"a*b\*"}], "n": [{"numeric": [">", 0, "<=", 5]}]},
        {"a": [{"cidr": "10.0.0.0/8"}]},
        {"a": [{"suffix": {"equals-ignore-case": "ab"}}]},
        {"a": [{"equals-ignore-case": "abcdefghij"}]},
        {"d": {"a": ["x"], "b": ["y"], "c": {"e": [1], "f": [{"exists": False}]}}},
        {"$or": [{"a": [1]}, {"b": [2]}]},
        {"a": ["x"], "a.b": [1], "a.c": [2]},
    ],
)
def test_rendering(pattern: dict[str, Any]) -> None:
    assert ruler.render(ruler.parse(pattern)) == pattern


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("price < 5", "price < 5: in a pattern a list"),
        ("ANY x = 1 AND ALL y < 5", "ALL y < 5: of a list"),
        ("ANY x = 1 AND ANY x = 2", "a pattern can only demand some element"),
        ("bid > $ask", "ask < $bid: patterns compare single fields"),
        ("ANY x >= 'a'", "do not order strings"),
        ("ANY x LIKE 'a_'", "x LIKE 'a_': no operator stands for a single"),
        ("ANY t > TIMESTAMP '2026-01-01T00:00:00Z'", "values of JSON only"),
        ("NOT CIDR(x, '10.0.0.0/8')", "NOT CIDR(x, '10.0.0.0/8'): patterns"),
        ("TRUE", "everything"),
    ],
)
def test_what_no_pattern_can_express(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        ruler.render(parse(text))
