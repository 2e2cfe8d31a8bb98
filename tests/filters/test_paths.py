"""Path filters: the vectors of the book, selectors against all short paths, evaluation against a walk of the tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.events import Event, Interval
from fieldfare.events.limits import Limits
from fieldfare.filters import EVERYTHING, NOTHING, Filter, FilterSyntaxError, parse
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.elements import Has, objects_at
from fieldfare.filters.expressions import UNCERTAIN
from fieldfare.filters.paths import MAX_STEPS, Path, Selector, path, places, selector
from fieldfare.filters.valueset import TRUE

AUCTION: dict[str, Any] = {
    "auction": {
        "endtime": "05/18/02 22:17:42",
        "minprice": 50,
        "seller": {"name": "Smith", "id": 1234},
        "item": [
            {"board": {"manufacturer": "Elitegroup", "type": "K7S5", "socket": "Socket A"}},
            {"cpu": {"manufacturer": "AMD", "type": "Athlon", "socket": "Socket A", "clock": 800}},
        ],
    }
}
"""the document of the book; its root `notification` is the event itself"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PATH('/auction/item/cpu', manufacturer = 'AMD' AND clock >= 700)", True),
        ("PATH('//cpu', manufacturer = 'AMD' AND clock >= 700)", True),
        ("PATH('//item/cpu', manufacturer = 'AMD' AND clock >= 900)", False),
        ("PATH('//cpu', type = 'K7S5')", False),  # the type of another element
        ("PATH('/auction//cpu')", True),
        ("PATH('/auction/*/cpu')", True),
        ("PATH('/auction/cpu')", False),
        ("PATH('/cpu')", False),
        ("PATH('//auction')", True),
        ("PATH('//*', socket = 'Socket A' AND clock IS MISSING)", True),
        ("PATH('//*/*/*/*')", False),
        ("PATH('/*', minprice < 100)", True),
        ("PATH('//em')", False),  # steps, not characters
        ("PATH('//clock')", False),  # an attribute is no element
        ("PATH('//item', cpu.clock = 800)", True),
        ("PATH('//item', PATH('/cpu', clock = 800))", True),
        ("PATH('//item', PATH('//*', clock = 800) AND PATH('//board'))", False),
        ("PATH('//auction', PATH('//*', clock = 800) AND PATH('//board'))", True),
        ("PATH('//item', cpu HAS (clock = 800 AND type = 'Athlon'))", True),
        ("PATH('//item', board IS MISSING AND cpu IS OBJECT)", True),
        ("PATH('//cpu', clock < 500 OR type = 'Athlon')", True),
        ("PATH('//cpu', clock < LENGTH(type))", False),
        ("NOT PATH('//gpu')", True),
        ("PATH('//seller', name = 'Smith') AND PATH('//cpu') AND auction.minprice = 50", True),
    ],
)
def test_the_auction_of_the_book(text: str, expected: bool) -> None:
    wanted = parse(text)
    for event in (Event(AUCTION), AUCTION):
        assert wanted.matches(event) is expected
        assert (~wanted).matches(event) is not expected
    assert parse(str(wanted)) == wanted
    assert parse(str(~wanted)) == ~wanted


def test_items_are_several_elements_of_one_name() -> None:
    assert path("//item", parse("EXISTS board")).matches(AUCTION)
    assert path("//item", parse("EXISTS cpu")).matches(AUCTION)
    assert not path("//item", parse("EXISTS board AND EXISTS cpu")).matches(AUCTION)


# Covering


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("PATH('//cpu', type = 'Athlon')", "PATH('//seller', name = 'Pu') AND PATH('//cpu', type = 'Athlon' AND clock >= 600)"),
        ("PATH('//cpu', clock >= 600)", "PATH('//cpu', manufacturer = 'AMD' AND clock >= 700)"),
        ("PATH('/auction', clock >= 600)", "PATH('/auction', manufacturer = 'AMD' AND clock >= 700)"),
        ("PATH('//cpu')", "PATH('//item/cpu')"),
        ("PATH('//cpu', clock > 1)", "PATH('/auction/item/cpu', clock > 2)"),
        ("PATH('//cpu', clock > 1)", "auction.item.cpu HAS (clock > 2)"),
        ("PATH('//*', clock > 1)", "PATH('//item/cpu', clock > 2)"),
        ("PATH('/a//c')", "PATH('/a/b/c')"),
        ("PATH('/a//c')", "PATH('/a//b/c')"),
        ("PATH('//a', PATH('//b', x > 1))", "PATH('/c/a', PATH('//c/b', x > 2))"),
        ("PATH('//a', x > 1 OR y > 1)", "PATH('//a', x > 2)"),
        ("PATH('//a', x > 1) OR PATH('//b')", "PATH('//b', x > 2)"),
        ("ANY a.b.x > 1", "PATH('/a/b', x > 2)"),
    ],
)  # fmt: skip
def test_covers(wide: str, narrow: str) -> None:
    assert parse(wide).covers(parse(narrow))
    assert not parse(narrow).covers(parse(wide))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("PATH('/a/b')", "PATH('/a/c')"),
        ("PATH('/b')", "PATH('//a/b')"),
        ("PATH('//item')", "PATH('//tem')"),
        ("PATH('//cpu', clock > 1)", "PATH('//cpu', price > 1)"),
        ("PATH('/*/b')", "PATH('/a/*')"),
        ("a.b HAS (x > 1)", "PATH('//c', x > 1)"),
    ],
)
def test_neither_covers(one: str, other: str) -> None:
    assert not parse(one).covers(parse(other))
    assert not parse(other).covers(parse(one))
    assert parse(one).overlaps(parse(other))  # an event has room for both


def test_equal_if_they_mean_the_same() -> None:
    assert parse("PATH('/a/b', x = 1 AND y = 2)") == parse("a.b HAS (y = 2 AND x = 1)")
    assert parse("PATH('//*//a')") == parse("PATH('//*/a')") == parse("PATH('/*//a')")
    assert parse("PATH('//a', x = 1 OR y = 2)") == parse("PATH('//a', x = 1) OR PATH('//a', y = 2)")
    assert parse("PATH('//a.b', TRUE)") == parse("path('//a/b')") == parse("PATH(:where)", where="//a/b")
    assert path("//a", NOTHING) == NOTHING


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("/a/b", "/a/b", True),
        ("/a/b", "/a/c", False),
        ("/a/b", "//b", True),
        ("/b", "//a/b", False),  # an absolute path is no proper suffix
        ("//a/b", "//b", True),
        ("//a/b", "//c/b", False),
        ("//a//b", "/c/*/b", True),
        ("/a//b", "/c//b", False),
    ],
)
def test_selectors_are_disjoint_if_they_end_or_begin_differently(one: str, other: str, expected: bool) -> None:
    assert selector(one).overlaps(selector(other)) is expected
    assert selector(other).overlaps(selector(one)) is expected


# Selectors against brute force


def texts(most: int) -> Iterator[str]:
    steps = [slashes + name for slashes in ("/", "//") for name in ("a", "b", "*")]
    for length in range(1, most + 1):
        yield from map("".join, product(steps, repeat=length))


PATHS = ["".join(names) for length in range(8) for names in product("abc", repeat=length)]
"""c stands for all names that no selector mentions"""


@cache
def selected(text: str) -> frozenset[str]:
    """Which paths a selector selects, by a regular expression; names are of one letter."""
    steps = re.findall(r"(//?)(.)", text)
    pattern = "".join((".*" if slashes == "//" else "") + name.replace("*", ".") for slashes, name in steps)
    return frozenset(filter(re.compile(pattern).fullmatch, PATHS))


def test_a_selector_selects_what_it_says() -> None:
    for text in texts(3):
        chosen = selector(text)
        assert {names for names in PATHS if chosen.selects(names)} == selected(text)


def test_equal_selectors_and_only_those_select_the_same() -> None:
    chosen: dict[frozenset[str], Selector] = {}
    for text in texts(3):
        assert chosen.setdefault(selected(text), selector(text)) == selector(text)
        assert selector(selector(text).text) == selector(text)
    assert len(set(chosen.values())) == len(chosen)


def test_selectors_cover_and_overlap_exactly() -> None:
    known = {selector(text): selected(text) for text in texts(3)}
    for mine, here in known.items():
        for its, there in known.items():
            assert mine.covers(its) is (here >= there), (mine.text, its.text)
            assert mine.overlaps(its) is (not here.isdisjoint(there)), (mine.text, its.text)


long = st.lists(st.tuples(st.sampled_from(["/", "/", "//"]), st.sampled_from("aab**")), min_size=1, max_size=7)
selectors = long.map(lambda steps: selector("".join(slashes + name for slashes, name in steps)))


def included(narrow: Selector, wide: Selector) -> bool:
    """By trying all paths at once: the sets of steps that each may have made."""
    begin = (frozenset({0}), frozenset({0}))
    seen, queue = {begin}, [begin]
    for inside, outside in queue:
        if len(narrow.steps) in inside and len(wide.steps) not in outside:
            return False
        for name in "abc":
            following = (advanced(narrow, inside, name), advanced(wide, outside, name))
            if following not in seen:
                seen.add(following)
                queue.append(following)
    return True


def advanced(chosen: Selector, made: frozenset[int], name: str) -> frozenset[int]:
    to_make = [(i, chosen.steps[i]) for i in made if i < len(chosen.steps)]
    waiting = {i for i, step in to_make if step.gap}
    return frozenset(waiting | {i + 1 for i, step in to_make if step.name in ("*", name)})


@given(selectors, selectors)
def test_longer_selectors_cover_exactly(one: Selector, other: Selector) -> None:
    assert one.covers(other) is included(other, one)
    assert other.covers(one) is included(one, other)


@given(selectors, st.data())
def test_what_was_loosened_covers(narrow: Selector, data: st.DataObject) -> None:
    loose = [
        f"{data.draw(st.sampled_from(['//', '/']))}{data.draw(st.sampled_from([step.name, '*']))}"
        for step in narrow.steps
    ]
    wide = selector("".join(loose))
    assert wide.covers(narrow) is included(narrow, wide)


# Evaluation


leaves = st.sampled_from([1, 2, None, [1, 2], [], "x"])
objects = st.recursive(
    st.dictionaries(st.sampled_from("abc"), leaves, max_size=3),
    lambda inner: st.dictionaries(
        st.sampled_from("abc"), leaves | inner | st.lists(inner | st.lists(inner, max_size=2), max_size=3), max_size=3
    ),
    max_leaves=12,
)
conditions = st.sampled_from(
    ["TRUE", "a = 1", "b != 1", "ANY a = 1", "c IS MISSING", "a = 1 OR b = 2", "a IS OBJECT", "a HAS (b = 1)", "PATH('//b', a = 1)", "NOT PATH('//b')"]
).map(parse)  # fmt: skip
few = st.lists(st.tuples(st.sampled_from(["/", "//"]), st.sampled_from("abc*")), min_size=1, max_size=3)
wheres = few.map(lambda steps: selector("".join(slashes + name for slashes, name in steps)))


def walk(tree: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Every element below an object, with the names on the way."""
    for name, value in tree.items():
        for element in elements(value):
            yield (*names, name), element
            yield from walk(element, (*names, name))


def elements(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from elements(item)


@given(wheres, conditions, objects)
def test_a_path_filter_means_that_some_element_matches(
    where: Selector, condition: Filter, event: dict[str, Any]
) -> None:
    expected = any(where.selects(names) and condition.matches(element) for names, element in walk(event))
    wanted = path(where, condition)
    assert wanted.matches(event) is expected
    assert (~wanted).matches(event) is not expected
    assert parse(str(wanted)) == wanted


@given(wheres, wheres, conditions, conditions, st.lists(objects, max_size=5))
def test_covering_is_safe(one: Selector, other: Selector, first: Filter, second: Filter, events: list[Any]) -> None:
    wide, narrow = path(one, first), path(other, second)
    if wide.covers(narrow):
        assert all(wide.matches(event) for event in events if narrow.matches(event))


def test_places() -> None:
    fields = Event(AUCTION).fields
    found = list(places(fields))
    assert len(set(found)) == len(found)
    assert sorted(place for place in found if any(True for _ in objects_at(fields, place))) == [
        "auction", "auction.item", "auction.item.board", "auction.item.cpu", "auction.seller",
    ]  # fmt: skip


def test_an_event_may_be_given_flat() -> None:
    flat = {"auction.seller.name": "Smith", "auction.item.cpu.clock": 800, "auction": {"minprice": 50}}
    assert sorted(places(Event(flat).fields)) == ["auction", "auction.item", "auction.item.cpu", "auction.seller"]
    assert parse("PATH('//cpu', clock > 700)").matches(flat)
    assert parse("PATH('//item', cpu.clock > 700)").matches(flat)
    assert parse("PATH('//*', minprice = 50 AND seller.name = 'Smith')").matches(flat)
    assert not parse("PATH('//cpu', clock > 900)").matches(flat)
    assert not parse("PATH('//*', minprice = 50 AND name = 'Smith')").matches(flat)


def test_deep_elements_are_not_looked_for() -> None:
    names = ["x"] * (MAX_STEPS - 1)
    deep, deeper = (Event({".".join([*names, *below, "a"]): 1}) for below in (["x"], ["x", "x"]))
    assert parse("PATH('//x', a = 1)").matches(deep)
    assert not parse("PATH('//x', a = 1)").matches(deeper)
    assert parse("PATH('/x//x', a IS MISSING)").matches(deeper)  # but what is above them is
    assert parse("PATH('//x')").covers(Filter.where(Has(".".join([*names, "x"]), EVERYTHING), Constraint(TRUE)))
    assert not parse("PATH('//x')").covers(
        Filter.where(Has(".".join([*names, "x", "x"]), EVERYTHING), Constraint(TRUE))
    )
    assert not parse("PATH('//x')").matches(Event({".".join(["y"] * 100_000): 1}, limits=Limits()))


def test_intervals_are_certain_or_not() -> None:
    wanted = parse("PATH('//i', price < 10)")
    inside, across, outside = (Event({"o": {"i": [{"price": Interval(low, low + 4)}]}}) for low in (1, 8, 20))
    assert [wanted.matches(event) for event in (inside, across, outside)] == [True, True, False]
    assert [wanted.matches(event, "covers") for event in (inside, across, outside)] == [True, False, False]
    assert Path(selector("//i"), parse("price < 10")).evaluate(across.fields) is UNCERTAIN


# Text


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("PATH()", 1, "PATH takes a selector and a condition"),
        ("PATH('//a', b = 1, c = 1)", 1, "PATH takes a selector and a condition"),
        ("PATH(a, b = 1)", 6, "PATH needs a selector such as '//item/cpu', not a"),
        ("PATH('a')", 6, "'a' is not a selector"),
        ("PATH('/')", 6, "'/' is not a selector"),
        ("PATH('//a/')", 6, "'//a/' is not a selector"),
        ("PATH('///a')", 6, "'///a' is not a selector"),
        ("PATH('//a..b')", 6, "a step of a selector is a name"),
        ("PATH('//cp*')", 6, "a step of a selector is a name, or * for any: 'cp*'"),
        ("PATH('//cpu[@clock>1]')", 6, "the condition is the second argument"),
        (f"PATH('{'/a' * 65}')", 6, "65 steps, more than 64"),
        ("PATH('//a', 1)", 13, "expected a condition, found the value 1"),
        ("PATH('//a') = TRUE", 1, "expected a value, found the condition PATH('//a')"),
        ("PATH('//a', b = 1 AND b = 2)", 1, "nothing can match"),
    ],
)
def test_what_cannot_be_read(text: str, column: int, problem: str) -> None:
    with pytest.raises(FilterSyntaxError, match=re.escape(problem)) as caught:
        parse(text)
    assert caught.value.column == column


def test_names_may_be_strange() -> None:
    wanted = parse("PATH('//it''s \"one\"', \"unit price\" = 1)")
    assert str(wanted) == "PATH('//it''s \"one\"', \"unit price\" = 1)"
    assert wanted.matches({"a": {'it\'s "one"': {"unit price": 1}}})
    assert parse("PATH('/*', x = 1)").matches({"*": {"x": 1}})
    assert not parse("PATH('/*', x = 1)").fields()
