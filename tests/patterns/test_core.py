"""The automata do what the slow interpreter does, and the printer writes what the parser reads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.patterns import oracle
from tests.patterns.histories import detections, history, shown
from tests.patterns.trees import offers, trees

from fieldfare.filters.errors import FilterSyntaxError, FilterTooComplex
from fieldfare.patterns import tree as t
from fieldfare.patterns.machine import Policy, initial, steps
from fieldfare.patterns.parser import parse_core
from fieldfare.patterns.printer import print_core
from fieldfare.patterns.program import compile_program
from fieldfare.patterns.runs import Offer
from fieldfare.patterns.stamps import SECOND

UNTIL = 20 * SECOND
POLICIES = [
    Policy(),
    Policy(skip="past last"),
    Policy(skip="to next"),
    Policy(skip="to first", target="B"),
    Policy(skip="to last", target="A"),
    Policy(one_shot=True),
]


def compare(tree: t.Tree, history: list[Offer], skip: bool, policy: Policy) -> None:
    program = compile_program(tree, skip=skip)
    _, matches = steps(program, policy, initial(program, policy), history, UNTIL)
    expected = oracle.interpret(tree, history, until=UNTIL, skip=skip, policy=policy)
    assert [shown(match) for match in matches] == [oracle.shown(one) for one in expected], print_core(tree)


@few(60)
@given(trees(), offers(), st.booleans(), st.sampled_from(POLICIES))
def test_automata_agree_with_the_interpreter(tree: t.Tree, history: list[Offer], skip: bool, policy: Policy) -> None:
    compare(tree, history, skip, policy)


@given(trees(2, preferences=True), offers(), st.booleans(), st.sampled_from(POLICIES))
def test_preferences_agree_with_the_interpreter(tree: t.Tree, history: list[Offer], skip: bool, policy: Policy) -> None:
    compare(tree, history, skip, policy)


@given(trees(3, preferences=True))
def test_printed_trees_are_read_back(tree: t.Tree) -> None:
    assert parse_core(print_core(tree)) == tree


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 0, "expected '[' or '(', found the end"),
        ("[A", 2, "expected ']', found the end"),
        ("[A] ;", 5, "expected '[' or '(', found the end"),
        ("[A] & [B]", 4, "'&' is not expected here"),
        ("([A], [B])", 9, "expected ')_{'"),
        ("([A], [B])_{T=+5 parsecs}", 15, "no duration"),
        ("([A], [B])_{T=+0}", 15, "longer than nothing"),
        ("([A])_{T=+5}", 7, "a limit has one operand"),
        ("([A], [B])_{T=@tomorrow}", 15, "RFC 3339"),
        ("[!A]", 3, "'<=' and a domain"),
        ("[A]{3,2}", 4, "between 3 and 2"),
        ("[A] [1]", 5, "expected a name"),
        ("[A] )", 4, "expected an operator or the end"),
    ],
)
def test_errors_name_the_place(text: str, position: int, problem: str) -> None:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_core(text)
    assert caught.value.position == position
    assert problem in caught.value.problem


def test_trees_without_a_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="left operand of a timing"):
        compile_program(parse_core("([A]*, [B])_{T=+5}"))
    with pytest.raises(ValueError, match="at least one event"):
        compile_program(parse_core("([A]?)*>"))
    with pytest.raises(FilterTooComplex, match="states"):
        compile_program(parse_core("[A]{1000}{1000}"))
    with pytest.raises(FilterTooComplex, match="nested"):
        parse_core("(" * 60 + "[A]" + ")" * 60)


def test_alternatives_that_may_be_empty_compile_quickly() -> None:
    tree = parse_core(" ".join(["([A]? | [B]?)"] * 40) + " [C]")
    assert len(compile_program(tree).start) == 81


def test_a_pattern_has_bounds_and_counts_what_it_dropped() -> None:
    program, policy = compile_program(parse_core("[A];[B]")), Policy(instances=3)
    given = history(" ".join(f"A{n}@{n}" for n in range(9)) + " B1@10 B2@11 B3@12 B4@13")
    machine, matches = steps(program, policy, initial(program, policy), given)
    assert machine.dropped == 6
    assert [shown(match) for match in matches] == ["A6+B1@[6,10]", "A7+B2@[7,11]", "A8+B3@[8,12]"]
    assert machine.open == 0


def test_an_event_touches_only_the_instances_that_wait_for_it() -> None:
    program, policy = compile_program(parse_core("[A];[B];[C]")), Policy()
    machine, _ = steps(program, policy, initial(program, policy), history(" ".join(f"A{n}@{n}" for n in range(50))))
    assert [sorted(map(str, names)) for names in machine.groups] == [["B"]]
    after, _ = steps(program, policy, machine, history("C1@60"))
    assert after is machine


def test_a_split_pattern_detects_what_the_whole_detects() -> None:
    """A sub-expression may be replaced by the set of its composite events, here `[A];[B]` by c."""
    text = "A1@1 C1@2 A2@3 B1@4 D1@5 B2@6 C2@7 D2@8"
    whole = detections("([A];[B]) || ([C];[D])", text)
    program = compile_program(parse_core("[A];[B]"))
    _, left = steps(program, Policy(), initial(program, Policy()), history(text))
    assert whole == ["(A1+B1)+(C1+D1)@[1,5]", "(A2+B2)+(C2+D2)@[3,8]"]
    assert [shown(match) for match in left] == ["A1+B1@[1,4]", "A2+B2@[3,6]"]
