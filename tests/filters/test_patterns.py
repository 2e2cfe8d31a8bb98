"""LIKE against Python's regular expressions, and languages against all short words."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.effort import steps

from fieldfare.filters import automaton, parse, strings
from fieldfare.filters.intervals import FULL, Intervals, points
from fieldfare.filters.machines import PatternMachine, TooComplex
from fieldfare.filters.patterns import MANY, ONE, Pattern, escape, like, pattern
from fieldfare.filters.strings import Language, StringSet

WORDS = ["".join(word) for length in range(7) for word in itertools.product("abc", repeat=length)]
texts = st.text("ab%_\\", max_size=6)


def regex(text: str) -> re.Pattern[str]:
    parts = re.findall(r"\\[%_\\]|.", text, re.DOTALL)
    pieces = {"%": ".*", "_": "."}
    return re.compile("".join(pieces.get(p) or re.escape(p[1:] if len(p) > 1 else p) for p in parts), re.DOTALL)


@given(texts, st.text("abc%_\\", max_size=8))
def test_like_means_what_its_regular_expression_means(text: str, word: str) -> None:
    assert like(text).matches(word) == (regex(text).fullmatch(word) is not None)


@given(texts)
def test_the_text_of_a_pattern_reads_back(text: str) -> None:
    assert like(like(text).text) == like(text)


@given(st.text(max_size=5))
def test_an_escaped_text_means_itself(text: str) -> None:
    assert like(escape(text)).matches(text)
    assert like(escape(text)).tokens == tuple(text)


def test_wildcards_are_normalised() -> None:
    assert like("%_%a%%").tokens == (ONE, MANY, "a", MANY)
    assert pattern(MANY, ONE, MANY, ONE).tokens == (ONE, ONE, MANY)
    assert not like("1_%", ignore_case=True).ignore_case


@pytest.mark.parametrize(("text", "word", "fits"), [
    ("abc", "ABC", True), ("a_c%", "AXCD", True), ("%ß", "xß", True), ("İ", "i", False),
])  # fmt: skip
def test_ignoring_case(text: str, word: str, fits: bool) -> None:
    assert like(text, ignore_case=True).matches(word) is fits


def test_a_pattern_with_many_stars_is_linear() -> None:
    assert not like("%a" * 60).matches("a" * 59 + "b" * 20_000)


def machine(text: str) -> automaton.Automaton:
    return automaton.build([PatternMachine(like(text))], lambda bits: bits[0])


SHORT = [like(text) for text in ("%a", "%ab", "a%b", "%a%", "%ba%", "_", "_%a", "a_%", "%b_")]
sets: st.SearchStrategy[StringSet] = st.recursive(
    st.sampled_from(SHORT).map(strings.matching),
    lambda inner: st.one_of(
        st.builds(strings.either, inner, inner),
        st.builds(strings.both, inner, inner),
        inner.map(lambda language: ~language),
    ),
    max_leaves=4,
)


@given(sets, sets)
def test_languages_against_all_short_words(a: StringSet, b: StringSet) -> None:
    ina, inb = [word in a for word in WORDS], [word in b for word in WORDS]
    assert strings.contains(a, b) == all(x or not y for x, y in zip(ina, inb, strict=True))
    assert strings.overlap(a, b) == any(x and y for x, y in zip(ina, inb, strict=True))
    assert (a == b) == (ina == inb)
    assert a != b or hash(a) == hash(b)


def test_a_language_of_few_intervals_is_intervals() -> None:
    assert isinstance(strings.matching(like("a_%")), Intervals)
    assert isinstance(strings.matching(like("aB", ignore_case=True)), Intervals)
    assert isinstance(strings.matching(like("%a")), Language)
    assert strings.matching(like("%")) == FULL


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("\ud7ff", "\ue000")])
def test_neighbouring_characters_that_lead_to_one_state_are_points_nevertheless(first: str, second: str) -> None:
    ends = strings.matching(pattern(MANY, first))
    listed = strings.both(~ends, ~points([second]))  # and what ends so, but for the first itself
    assert strings.either(listed, ~points([first, first + second, second])) == ~points([first, second])


@pytest.mark.parametrize(("text", "accepted", "found"), [
    ("ab", True, ["ab"]), ("a_", True, ["aa", "ab"]), ("c%", True, []), ("%", False, []), ("a%", True, None),
    ("a%", False, None), ("_%", False, [""]),
])  # fmt: skip
def test_words_over_an_alphabet(text: str, accepted: bool, found: list[str] | None) -> None:
    assert automaton.words(machine(text), "ab", 3, accepted=accepted) == found
    assert automaton.words(PatternMachine(like(text)), "ab", 3, accepted=accepted) == found


@given(sets)
def test_few_words_over_an_alphabet_are_all(a: StringSet) -> None:
    inside = [word for word in WORDS if word in a and "c" not in word]
    found = automaton.words(strings.machine_of(a), "ab", len(WORDS))
    assert found is None or [word for word in found if len(word) < 7] == inside


def test_minimal_automata_are_small_and_equal() -> None:
    assert len(machine("%error%").accepting) == 6
    assert machine("%a%") == ~(~machine("%a%"))
    assert machine("a%%b") == machine("a%b")


def test_a_pattern_too_complex_to_analyse_says_so() -> None:
    assert Pattern((MANY, "a", *[ONE] * 3)).matches("xabcd")
    with pytest.raises(TooComplex):
        machine("%a" + "_" * 12)


@pytest.mark.parametrize(
    ("letter", "end", "ignore_case", "searched"),
    [("a", "b%", False, True), ("a", "b%", True, True), ("ä", "b%", True, False), ("a", "_b%", False, False)],
    ids=["plain", "ignoring case", "ignoring case beyond ASCII", "wildcard"],
)
def test_matching_takes_steps_that_grow_with_the_text_alone(
    letter: str, end: str, ignore_case: bool, searched: bool
) -> None:
    """Pattern and text eight times as long took 64 times as long: a long row was tried at every place of the text.

    A regular expression would take no step of Python, and hide its cost; so there must be a step for each character,
    but where `str.find` searches, in a time that grows with the text.
    """
    wanted, word = like("%" + letter * 500 + end, ignore_case=ignore_case), letter * 10_000
    assert not wanted.matches("a")  # makes what is made once
    taken = steps(lambda: wanted.matches(word))
    assert taken < 100 if searched else len(word) < taken < 5 * len(word)
    assert not wanted.matches(word)


def test_long_rows_with_wildcards_are_found() -> None:
    row = "_b" * 30
    assert like(f"%{row}c%").matches("x" * 50 + "ab" * 30 + "c" + "x")
    assert not like(f"%{row}c%").matches("x" * 50 + "ab" * 29 + "c" + "x")
    assert like(f"{row}%{row}", ignore_case=True).matches("aB" * 61)
    assert not like(f"{row}%{row}", ignore_case=True).matches("aB" * 59)


LONG = "ab" * 600


@pytest.mark.parametrize("other", ["x LIKE '%a%b%'", "x CONTAINS 'q'", "x ENDS WITH 'q'", f"x LIKE '%{LONG}%'"])
@pytest.mark.parametrize("long", [f"x STARTS WITH '{LONG}'", f"x < '{LONG}'", f"x > '{LONG}' AND x < '{LONG}c'"])
def test_what_is_too_complex_to_compare_is_neither_covered_nor_apart(long: str, other: str) -> None:
    """It was an error, and so nobody could subscribe to a pattern any more where somebody had a long prefix."""
    one, two = parse(long), parse(other)
    assert not one.covers(two)
    assert not two.covers(one)
    assert one.overlaps(two)
    assert two.overlaps(one)
    assert one.covers(parse(long))


def test_patterns_are_compared_in_few_steps() -> None:
    """Each pair took 60 ms: with 44 of them a subscription took a second, in which the node did nothing else."""
    chosen = random.Random(3)
    some = [f"x LIKE '%{'%'.join(''.join(chosen.choices('ab', k=3)) for _ in range(30))}%'" for _ in range(20)]
    found = list(map(parse, some))
    assert steps(lambda: [one.covers(other) for one in found for other in found]) < 3_000_000
    assert not any(one.covers(other) for one in found for other in found if one is not other)


@given(texts, texts)
def test_an_example_of_a_language_is_one_of_its_shortest_words(text: str, other: str) -> None:
    language = strings.both(strings.matching(like(text)), strings.matching(like(other)))
    if isinstance(language, Language):
        assert language.example in language
        assert not any(word in language for word in WORDS if len(word) < len(language.example))
