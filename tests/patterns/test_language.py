"""The language for people: what texts mean, beside the slow interpreter, and what errors say."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.patterns import oracle
from tests.patterns.histories import shown
from tests.patterns.trees import offers

from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.patterns import Detector, Pattern, any_of, event, parse_pattern, pattern, some_of
from fieldfare.patterns import tree as t
from fieldfare.patterns.parser import parse_core
from fieldfare.patterns.printer import print_core
from fieldfare.patterns.runs import Offer
from fieldfare.patterns.stamps import SECOND, Occurrence

FILTERS = {"a": "A = 1", "b": "B = 1", "c": "C = 1"}
UNTIL = 20 * SECOND

CORE = [
    ("a followed by b", "[a] ; [b]"),
    ("a then b", "[a] [b]"),
    ("a or b and c followed by a", "[a] | [b] || [c] ; [a]"),
    ("a followed by b within 1 hour", "([a] ; [b <= {b, T1}])_{T1=+1h}"),
    ("a followed by not b within 5 min", "([a] ; [T1 <= {T1, b}])_{T1=+5min}"),
    ("a followed by not c followed by b", "[a] ; [b <= {b, c}]"),
    ("a followed by not c within 5 s followed by b", "([a] ; [T1 <= {T1, c}])_{T1=+5s} ; [b]"),
    ("a followed by not c followed by b within 2s", "([a] ; [b <= {b, c, T1}])_{T1=+2s}"),
    ("(a followed by b) within 1 hour", "([a] ; [b])_{<=1h}"),
    ("at least 3 a followed by b", "[a]{3,}> ; [b]"),
    ("exactly 2 a followed by at most 2 b followed by c", "[a]{2}> ; [b]{0,2}> ; [c]"),
    ("a+? followed by b{2,3} followed by c?", "[a]+< ; [b]{2,3}> ; [c]?>"),
    ("any of (a, b) followed by c", "[a, b] ; [c]"),
    ("2 of (a, b, c)", "[a] || [b] | [a] || [c] | [b] || [c]"),
    ("(a and b) within 5s", "([a] || [b])_{<=5s}"),
    ("a followed by (b and c) within 5s", "([a] ; ([b <= {b, T1}] || [c <= {c, T1}]))_{T1=+5s}"),
    (
        "a followed by b within 1s followed by c within 2s",
        "(([a] ; [b <= {b, T1}])_{T1=+1s} ; [c <= {c, T2}])_{T2=+2s}",
    ),
]


@pytest.mark.parametrize(("text", "core"), CORE, ids=[one[0] for one in CORE])
def test_texts_in_the_core_language(text: str, core: str) -> None:
    tree = parse_pattern(text, FILTERS).tree
    assert print_core(tree) == print_core(parse_core(core))


def test_the_same_in_python() -> None:
    a, b, c = (event(name, filter) for name, filter in FILTERS.items())
    same = {
        "a followed by b within 1 hour": a.followed_by(b, within="1 hour"),
        "a followed by not c followed by b": a.followed_by(b, without=c),
        "a followed by not b within 5 min": a.not_followed_by(b, "5 min"),
        "at least 3 a then b": a.at_least(3).then(b),
        "any of (a, b) or c?": any_of(a, b) | c.optional(),
        "2 of (a, b, c)": some_of(2, a, b, c),
        "(a and b{2}) within 5s": (a & b.repeated(2)).within("5s"),
        "b followed by a": a.after(b),
        "a followed by b within 1s or a followed by c within 2s": a.followed_by(b, within="1s")
        | a.followed_by(c, within="2s"),
    }
    for text, expression in same.items():
        assert parse_pattern(text, FILTERS).expression == expression, text


Bound = Sequence[tuple[str, Any]]


def values(bound: Bound, name: str) -> list[Any]:
    return [fields["v"] for one, fields in bound if one == name]


def compared(op: Callable[[Any, Any], bool], left: list[Any], right: list[Any]) -> bool:
    return bool(left and right) and op(left[-1], right[-1])


CONDITIONS: dict[str, tuple[str, Callable[[Bound], bool]]] = {
    "b.v > a.v": ("b", lambda bound: compared(operator.gt, values(bound, "b"), values(bound, "a"))),
    "b.v = first(a.v)": ("b", lambda bound: compared(operator.eq, values(bound, "b"), values(bound, "a")[:1])),
    "a.v >= prev(a.v) OR count(a) = 1": ("a", lambda bound: len(values(bound, "a")) == 1 or compared(operator.ge, values(bound, "a"), values(bound, "a")[:-1])),
    "sum(a.v) >= 2": ("end", lambda bound: sum(values(bound, "a")) >= 2 and bool(values(bound, "a"))),
    "b.v <= avg(a.v)": ("b", lambda bound: compared(operator.le, values(bound, "b"), [sum(values(bound, "a")) / (len(values(bound, "a")) or 1)] if values(bound, "a") else [])),
    "max(a.v) < 3": ("end", lambda bound: bool(values(bound, "a")) and max(values(bound, "a")) < 3),
    "count(a) + count(b) >= 2": ("end", lambda bound: len(values(bound, "a")) + len(values(bound, "b")) >= 2),
}  # fmt: skip
EXPRESSIONS = [
    "a followed by b", "a+ followed by b", "a+? followed by b", "a{1,2} then b", "a followed by a+ followed by b within 4s",
    "(a+ followed by b) within 5s", "a followed by not c followed by b+ followed by c", "a? followed by b", "at least 2 a then any of (b, c)",
    "a followed by b followed by not c within 2s",
]  # fmt: skip
PARALLEL = [
    "a and b",
    "(a and b) followed by c",
    "a followed by c and b within 3s",
    "(a+ followed by c and b) within 6s",
]


class Python(oracle.Conditions):
    """Conditions as Python functions, in the places of the reference page."""

    def __init__(self, texts: Sequence[str], *, parallel: bool) -> None:
        found = [CONDITIONS[text] for text in texts]
        both = {text for text in texts if "b" in text.split("(")[0] or "b.v" in text}
        self.whole = [
            check
            for text, (place, check) in zip(texts, found, strict=True)
            if place == "end" and not (parallel and "b" in text.replace("sub", "") and "a" in text and text in both)
        ]
        self.parts = [check for text, (_, check) in zip(texts, found, strict=True) if parallel and text in both]
        self.names: dict[str, list[Callable[[Bound], bool]]] = {}
        for text, (place, check) in zip(texts, found, strict=True):
            if place != "end" and not (parallel and text in both):
                self.names.setdefault(place, []).append(check)

    def holds(self, name: str, bound: Bound, fields: Any) -> bool:
        return all(check([*bound, (name, fields)]) for check in self.names.get(name, ()))

    def fit(self, tree: t.Parallel, bound: Bound) -> bool:
        return all(check(bound) for check in self.parts)

    def complete(self, bound: Bound) -> bool:
        return all(check(bound) for check in self.whole)


def lower(history: list[Offer], key: str = "") -> list[Offer]:
    """The same history with names in small letters, for a detector and the interpreter."""
    found = []
    for one in history:
        fields = {**one.fields, **{str(label): 1 for label in one.labels}}
        event = one.event._replace(event=fields)
        labels = frozenset(str(label).lower() for label in one.labels)
        found.append(Offer(event, event.key, labels, fields))
    return found


AFTER = ["chronicle", "past last event", "to next event", "to first a", "to last b"]


def check(found: Pattern, history: list[Offer], conditions: oracle.Conditions) -> None:
    detector = Detector({"p": found})
    matches = [shown(one.match) for one in detector.step([one.event for one in history], UNTIL / SECOND)]
    expected = []
    for key in dict.fromkeys(one.fields["v"] if found.keys else 0 for one in history):
        mine = [one for one in history if not found.keys or one.fields["v"] == key]
        expected += oracle.interpret(
            found.tree, mine, until=UNTIL, skip=True, policy=found.policy, conditions=conditions
        )
    assert sorted(matches) == sorted(oracle.shown(one) for one in expected), found.text


@given(
    st.sampled_from(EXPRESSIONS), st.lists(st.sampled_from(sorted(CONDITIONS)), max_size=2, unique=True),
    offers(), st.sampled_from(AFTER), st.booleans(),
)  # fmt: skip
def test_conditions_agree_with_the_interpreter(
    text: str, where: list[str], history: list[Offer], after: str, keyed: bool
) -> None:
    where = [one for one in where if "b" in text or "b" not in one]
    if "b" not in text:
        after = "chronicle"
    clauses = f" where {' AND '.join(f'({one})' for one in where)}" if where else ""
    clauses += f" after match {after}" + " for each v" * keyed
    check(parse_pattern(text + clauses, FILTERS), lower(history), Python(where, parallel=False))


@few(50)
@given(
    st.sampled_from(PARALLEL), st.sampled_from(["b.v > a.v", "b.v = first(a.v)"]), offers(), st.sampled_from(AFTER[:3])
)
def test_conditions_across_parallel_parts(text: str, where: str, history: list[Offer], after: str) -> None:
    found = parse_pattern(f"{text} where {where} after match {after}", FILTERS)
    check(found, lower(history), Python([where], parallel=True))


@few(30)
@given(st.sampled_from(EXPRESSIONS + PARALLEL), st.lists(st.sampled_from(sorted(CONDITIONS)), max_size=2, unique=True))
def test_the_text_of_a_pattern_is_read_back(text: str, where: list[str]) -> None:
    where = [one for one in where if "b" in text or "b" not in one]
    clauses = f" where {' AND '.join(f'({one})' for one in where)}" if where else ""
    clauses += ' select v as v, count(a) + 1 as many for each v, "other key" in windows of 10 min after match past last event once allow 5s of disorder limit 7'
    found = parse_pattern(text + clauses, FILTERS)
    again = parse_pattern(found.text)
    assert again.text == found.text
    assert again.expression == found.expression
    assert (again.keys, again.policy, again.window, again.disorder) == (
        ("v", "other key"),
        found.policy,
        600 * SECOND,
        5 * SECOND,
    )


def at(second: float, **fields: Any) -> Occurrence:
    return Occurrence(round(second * SECOND), round(second * SECOND), fields, "", round(second * 10))


def test_a_composite_event_says_what_the_pattern_selects() -> None:
    text = """
        small: [type = 'payment' AND amount < 10]
        large: [type = 'payment' AND amount > 500]
        at least 3 small followed by large within 1 hour
        for each card
        where large.amount > 10 * avg(small.amount)
        select card as card, count(small) as tries, sum(small.amount) + large.amount as total, missing.x as nothing
    """.replace(", missing.x as nothing", ", prev(large.amount) as nothing")
    detector = Detector({"fraud": parse_pattern(text)})
    given = [
        at(n, type="payment", amount=amount, card=card)
        for n, (card, amount) in enumerate([("x", 5), ("y", 1), ("x", 6), ("x", 7), ("y", 900), ("x", 600)])
    ]
    (found,) = detector.step(given)
    event = detector.event(found, "oslo")
    assert {name: event.get(name) for name in ("pattern", "detector", "card", "tries", "total", "nothing")} == {
        "pattern": "fraud", "detector": "oslo", "card": "x", "tries": 3, "total": 618, "nothing": None,
    }  # fmt: skip
    assert event["constituents.event.amount"] == (5, 6, 7, 600)


def test_filters_of_other_languages() -> None:
    found = parse_pattern("""a: ruler [{"price": [{"numeric": ["<", 5]}]}] b: cesql [price > 10] a followed by b""")
    assert (str(found.filters["a"]), str(found.filters["b"])) == (
        "ANY price < 5",
        "CAST(price AS INTEGER) > 10",
    ) or found.filters
    assert [one.match.stamp.high for one in Detector({"p": found}).step([at(1, price=3), at(2, price=20)])] == [
        2 * SECOND
    ]


def test_names_that_look_like_durations() -> None:
    found = parse_pattern("at least 3 d followed by h within 3 d", {"d": "x = 1", "h": "y = 1"})
    assert print_core(found.tree) == "([d]{3,}> ; [h <= {h, T1}])_{T1=+3d}"


MISTAKES = [
    ("a followed by", 13, "expected an event, found the end"),
    ("a folowed by b", 2, "found 'folowed'"),
    ("a followed by x", 14, "no event is named x; known are a, b, c"),
    ("not a", 4, "an event before not"),
    ("a followed by not b", 19, "within and a duration behind not"),
    ("a within 5", 9, "expected a duration"),
    ("(a followed by b", 16, "expected ')'"),
    ("a{3,2}", 0, "between 3 and 2"),
    ("a followed by (b and c)?*", 24, "found '*'"),
    ("a followed by (b?){2} followed by c", 14, "at least one event can be repeated") ,
    ("d: [price <] d", 11, "expected a field, a value"),
    ("d: [price < 5", 3, "no closing bracket"),
    ("d: [price < 5 AND price > 6] d", 18, "contradicts"),
    ("a: [x = 1] a", 0, "defined twice"),
    ("T1: [x = 1] a", 0, "names a timer"),
    ("a followed by b where x.v > 3", 22, "'x' is no name of the pattern, which has a, b"),
    ("a followed by b where b.v >", 27, "expected a field, a value"),
    ("a followed by b where b > 3", 22, "'b' is an event"),
    ("a where a.v > 3 AND a.v < 2", 20, "a.v < 2 contradicts a.v > 3"),
    ("a select count(a) as type", 0, "every composite event has a field type"),
    ("a select count(a)", 2, "write: select"),
    ("a after match past the last", 0, "after a match"),
    ("a after match to first z", 0, "no name z"),
    ("a for each", 2, "for each names fields"),
    ("a allow 5 seconds", 2, "of disorder"),
    ("a limit 0", 0, "at least 1"),
    ("a once once", 7, "two clauses"),
    ("core [a] ;", 10, "expected '['"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "position", "problem"), MISTAKES, ids=[one[0] for one in MISTAKES])
def test_mistakes_are_named(text: str, position: int, problem: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_pattern(text, FILTERS)
    assert problem in caught.value.problem
    assert caught.value.position == position


def test_python_refuses_what_has_no_meaning() -> None:
    a = event("a", "x = 1")
    with pytest.raises(ValueError, match="no name for events"):
        event("T1", "x = 1")
    with pytest.raises(ValueError, match="two filters"):
        a.followed_by(event("a", "x = 2"))
    with pytest.raises(ValueError, match="only events"):
        a.not_followed_by(a.followed_by(a), "5s")
    with pytest.raises(ValueError, match="choices"):
        some_of(3, a, a)
    with pytest.raises(ValueError, match="after a match"):
        pattern(a, after_match="to first")
