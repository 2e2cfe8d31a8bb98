"""Patterns in canonical form, and patterns cut into parts, detect what the whole detects."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.examples import few
from tests.patterns.trees import offers, trees

from fieldfare.filters import parse
from fieldfare.patterns import Detector, Occurrence, Pattern, parse_core, parse_pattern, print_core
from fieldfare.patterns import tree as t
from fieldfare.patterns.canonical import canonical, canonical_names, normal
from fieldfare.patterns.decomposition import Recipe, cuts, split
from fieldfare.patterns.definition import pattern as made
from fieldfare.patterns.expression import Expression
from fieldfare.patterns.machine import Policy, initial, steps
from fieldfare.patterns.program import compile_program
from fieldfare.patterns.runs import Offer
from fieldfare.patterns.stamps import SECOND

# Canonical form

DISJOINT = {name: parse(f"n = '{name}'") for name in "ABCDEFG"}
OVERLAPPING = {name: parse(f"{name} = 1") for name in "ABC"}


def pattern_of(tree: t.Tree, **options: Any) -> Pattern:
    return made(Expression(tree, {name: DISJOINT[name] for name in t.names(tree)}), **options)


def matches(tree: t.Tree, history: list[Offer]) -> list[Any]:
    program, policy = compile_program(tree, skip=True), Policy()
    _, found = steps(program, policy, initial(program, policy), history, 20 * SECOND)
    return [([what.number for _, what in one.events], one.stamp) for one in found]


@few(60)
@given(trees(3), offers())
def test_the_normal_form_of_a_tree_detects_the_same(tree: t.Tree, history: list[Offer]) -> None:
    """Events may have two of the names here, so the filters overlap."""
    assert matches(normal(tree, OVERLAPPING), history) == matches(tree, history), print_core(tree)


@few(60)
@given(trees(3, preferences=True), offers())
def test_the_same_with_names_that_exclude_each_other(tree: t.Tree, history: list[Offer]) -> None:
    history = [one._replace(labels=frozenset(sorted(one.labels)[:1])) for one in history]
    assert matches(normal(tree, DISJOINT), history) == matches(tree, history), print_core(tree)


def test_names_in_conditions_and_selections_follow() -> None:
    text = "{0}: [x = 1] {1}: [x = 2] {0} followed by {1} where {1}.y > {0}.y AND {1}.note = '{0}.y' select avg({0}.y) as m"
    one, two = (canonical(parse_pattern(text.format(*names))) for names in (("a", "b"), ("avg", "count")))
    assert one.text.replace("'a.y'", "'avg.y'") == two.text
    assert "e2.note = 'a.y'" in one.text
    overlapping = parse_pattern("p: [x > 1] q: [x > 2] p followed by q where q.y > p.y")
    assert canonical(overlapping).names == ["p", "q"]  # an event may be both, so the names count
    assert canonical_names(parse_pattern("p: [x > 1] q: [x > 2] p followed by q"))[1] == {"e1": "p", "e2": "q"}


# Decomposition


class Parts:
    """A recipe with a detector for each part, in one place and without delay; the slow twin of a network."""

    def __init__(self, recipe: Recipe, *, deep: bool) -> None:
        self.recipe = recipe
        self.detector = Detector({"p": recipe.runs}, kernels="lazy")
        self.parts = [Parts(split(cut.pattern, _outermost(cut.pattern) if deep else []), deep=deep)
                      for cut in recipe.parts.values()]  # fmt: skip

    def step(self, events: list[Occurrence], now: float) -> list[Any]:
        """Return the composite events of some events, and of the time until `now`."""
        found = self._advance(now)
        for event in events:
            inner = [made for part in self.parts for made in part.step([event], now)]
            for one in (*inner, event):
                found += [self._event(what) for what in self.detector.step([one])]
        return found

    def _advance(self, now: float) -> list[Any]:
        inner = [made for part in self.parts for made in part.step([], now)]
        found = [what for one in sorted(inner, key=lambda one: one.high) for what in self.detector.step([one])]
        return [self._event(what) for what in (*found, *self.detector.step([], now))]

    def _event(self, detection: Any) -> Occurrence:
        stamp = detection.match.stamp
        return Occurrence(stamp.low, stamp.high, self.recipe.event(detection.match, name="p"))


def _outermost(pattern: Pattern) -> list[Any]:
    chosen: list[Any] = []
    for cut in cuts(pattern):
        if not any(cut.overlaps(one) for one in chosen):
            chosen.append(cut)
    return chosen


def play(parts: Parts, events: list[Occurrence]) -> list[str]:
    found = []
    for event in events:
        found += parts.step([], (event.high - 1) / 1e6)
        found += parts.step([event], (event.high - 1) / 1e6)
    found += parts.step([], 1e3)
    return sorted(repr(one.event) for one in found)


@st.composite
def apart_trees(draw: st.DrawFn, names: str = "ABCDEFG", depth: int = 3) -> t.Tree:
    """Trees whose operands have no event in common."""
    if depth == 0 or len(names) == 1:
        domain = draw(st.sampled_from([(), (), tuple(names[:2])]))
        return t.Atom((names[0],), domain if domain != (names[0],) else ())
    middle = draw(st.integers(1, len(names) - 1))
    left, right = draw(apart_trees(names[:middle], depth - 1)), draw(apart_trees(names[middle:], depth - 1))
    kinds = [t.Sequence, t.Sequence, t.Concatenation, t.Alternation, t.Alternation, t.Parallel]
    kind: Any = draw(st.sampled_from(kinds))
    tree: t.Tree = kind(left, right)
    match draw(st.integers(0, 9)):
        case 0:
            return t.Within(tree, draw(st.integers(1, 9)) * SECOND)
        case 1:
            return t.Repetition(tree, 2, 2)
        case 2:
            return t.Repetition(tree, 1, None)
        case 3 if isinstance(tree, t.Sequence) and not t.may_be_empty(left):
            waits = isinstance(right, t.Atom) and draw(st.booleans())
            end = t.Atom(("T",), ("T", *right.names)) if isinstance(right, t.Atom) and waits else _ended(right)
            return t.Timing(left, end, "T", t.After(draw(st.integers(1, 5)) * SECOND), True)
    return tree


def _ended(tree: t.Tree) -> t.Tree:
    match tree:
        case t.Atom():
            return t.Atom(tree.names, (*tree.within, "T"))
        case t.Repetition():
            return t.Repetition(_ended(tree.body), tree.low, tree.high)
        case t.Within():
            return t.Within(_ended(tree.body), tree.duration)
        case t.Timing():
            return tree
    left, right = t.children(tree)
    return type(tree)(_ended(left), _ended(right))


@given(apart_trees(), st.randoms(use_true_random=False))
def test_what_differs_only_in_names_and_order_has_one_canonical_text(tree: t.Tree, random: Any) -> None:
    one = pattern_of(tree)
    names = dict(zip("ABCDEFG", random.sample("PQRSUVW", 7), strict=True))
    other = _shuffled(tree, names, random)
    filters = {new: DISJOINT[old] for old, new in names.items()}
    two = made(Expression(other, {name: filters[name] for name in t.names(other)}))
    assert canonical(one).text == canonical(two).text
    assert canonical(canonical(one)).text == canonical(one).text
    assert parse_pattern(canonical(one).text).text == canonical(one).text


def _shuffled(tree: t.Tree, names: dict[str, str], random: Any) -> t.Tree:
    """Return a tree with other names, and operands in another order where the order has no meaning."""
    match tree:
        case t.Atom():
            new = [[names.get(name, name) for name in some] for some in (tree.names, tree.domain)]
            for some in new:
                random.shuffle(some)
            return t.Atom(tuple(new[0]), tuple(new[1]), tree.negated)
        case t.Repetition():
            return t.Repetition(_shuffled(tree.body, names, random), tree.low, tree.high, tree.greedy)
        case t.Within():
            return t.Within(_shuffled(tree.body, names, random), tree.duration)
        case t.Timing():
            left, right = _shuffled(tree.left, names, random), _shuffled(tree.right, names, random)
            return t.Timing(left, right, tree.timer, tree.when, tree.strong)
    parts = [_shuffled(child, names, random) for child in t.children(tree)]
    apart = set(t.names(parts[0])).isdisjoint(t.names(parts[1]))
    if isinstance(tree, (t.Alternation, t.Parallel)) and apart and random.random() < 0.5:
        parts.reverse()
    return type(tree)(*parts)


@st.composite
def streams(draw: st.DrawFn) -> list[Occurrence]:
    """Points in time, all different."""
    found, time = [], 0
    for number, name in enumerate(draw(st.lists(st.sampled_from("ABCDEFG"), max_size=24))):
        time += draw(st.sampled_from([300_000, 500_000, 1_100_000, 1_700_000]))
        event = {"n": name, "k": draw(st.sampled_from("xxy")), "v": draw(st.integers(0, 3))}
        found.append(Occurrence(time, time, event, "", number))
    return found


@given(apart_trees(), streams(), st.booleans(), st.booleans(), st.booleans())
@example(parse_core("([A];[B] | [C];[D]) | [E]"), [], True, True, True)
def test_split_detectors_detect_what_the_whole_detects(
    tree: t.Tree, events: list[Occurrence], keyed: bool, windows: bool, deep: bool
) -> None:
    options: dict[str, Any] = {"for_each": "k"} if keyed else {}
    whole = pattern_of(tree, **options, windows="7 seconds" if windows else None)
    chosen = _outermost(whole)
    assume(chosen)
    recipe = split(whole, chosen)
    expected = play(Parts(split(whole, []), deep=False), events)
    assert play(Parts(recipe, deep=deep), events) == expected, (print_core(tree), recipe.runs.text)


@pytest.mark.parametrize(
    ("core", "parts"),
    [
        ("[A];[B];[C];[D]", ["[e1] ; [e2] ; [e3]", "[e1] ; [e2]"]),
        ("[A];([B];([C];[D]))", ["[e1] ; [e2] ; [e3]", "[e1] ; [e2]"]),
        ("([A];[B];[C])_{<=5s}", ["([e1] ; [e2])_{<=5s}"]),
        ("[A];[B] | [C]", ["[e1] ; [e2]"]),
        ("([A];[B]) || ([C];[D])", ["[e1] ; [e2]", "[e1] ; [e2]"]),
        ("([A];[B] || [C])_{<=5s}", []),  # the limit of the whole ends a side, from the first event of the other
        ("[A] ; ([B] | [C];[D])", []),
        ("([A] | [B];[C]) ; [D]", []),  # instances that began later may end earlier
        ("[A]{2,} ; [B]", []),
        ("([A];[B])+ ; [C]", []),
        ("[A];[B];[A]", []),  # the rest looks at events of the part
        ("[A]{3} ; [B]", ["[e1]{3}"]),
        ("(([A], [B <= {B, T}])_{T=+5s}) ; [C]", ["([e1], [e2 <= {T1, e2}])_{T1=+5s}"]),
        ("([A], [T <= {B, T}])_{T=+5s} ; [C]", []),  # ends by time, and a time event is no event of the rest
    ],
)
def test_only_exact_parts_are_cut(core: str, parts: list[str]) -> None:
    assert [print_core(one.pattern.tree) for one in cuts(pattern_of(parse_core(core)))] == parts


def test_other_cuts_would_detect_something_else() -> None:
    """The sub-expressions that the literature cuts, and we do not: what the whole finds, and the parts would not."""

    def found(core: str, part: str, runs: str, text: str) -> tuple[int, int]:
        events = [Occurrence(at, at, {"n": name}, "", at) for at, name in enumerate(text.split())]
        cut = cuts(pattern_of(parse_core(f"({part}) | [G]")))[0]  # a branch, to have a part for the twin
        whole = pattern_of(parse_core(core))
        filters = {**DISJOINT, "c1": parse(f"type = '{cut.type}'")}
        rest = parse_core(runs)
        rest_pattern = made(Expression(rest, {name: filters[name] for name in t.names(rest)}))
        split_up = Parts(Recipe(whole, rest_pattern, {"c1": cut}), deep=False)
        one, two = play(Parts(split(whole, []), deep=False), events), play(split_up, events)
        return len(one), len(set(one) & set(two))

    assert found("[A] ; ([B];[C])", "[B];[C]", "[A] ; [c1]", "B A B C") == (1, 0)
    assert found("([A];[B] | [C];[D]) ; [E]", "[A];[B] | [C];[D]", "[c1] ; [E]", "A C D B E") == (1, 0)
    assert found("([A];[B])* ; [C]", "[A];[B]", "[c1]* ; [C]", "A A B B C") == (1, 0)


def test_conditions_and_fields_go_with_a_part() -> None:
    text = """
        a: [n = 'A'] b: [n = 'B'] c: [n = 'C']
        (a followed by b where_ab) or c for each k where b.v > a.v AND c.v > 1
        select k as k, a.v as low, count(c) as many
    """.replace(" where_ab", "")
    whole = parse_pattern(text)
    (cut,) = cuts(whole)
    assert cut.pattern.text.splitlines()[2:] == [
        "core [e1] ; [e2]", "for each k", "where (e2.v > e1.v)", "select k as k, e1.v as v1",
    ]  # fmt: skip
    recipe = split(whole, [cut])
    assert recipe.runs.text.splitlines()[4:] == ["where (c.v > 1)", "select k as k, c1.v1 as low, count(c) as many"]
    story = [("A", "x", 2), ("B", "x", 1), ("C", "y", 2), ("B", "x", 3), ("C", "y", 0)]
    events = [Occurrence(at, at, {"n": n, "k": k, "v": v}, "", at) for at, (n, k, v) in enumerate(story)]
    expected = play(Parts(split(whole, []), deep=False), events)
    assert play(Parts(recipe, deep=True), events) == expected
    assert len(expected) == 2
    crossing = parse_pattern("a: [n = 'A'] b: [n = 'B'] c: [n = 'C'] a followed by b followed by c where c.v > a.v")
    assert cuts(crossing) == []
