"""Guesses of where clients go."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fieldfare.mobility.predictors import LastDirection, Markov, Nowhere, street

journeys = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), max_size=6)


@given(st.integers(2, 8), st.data())
def test_straight_on_and_back_at_the_end(length: int, data: st.DataObject) -> None:
    brokers = [f"b{number}" for number in range(length)]
    guess = LastDirection(street(brokers)).predict
    place, step = data.draw(st.integers(0, length - 1)), data.draw(st.sampled_from([-1, 1]))
    for _ in range(3 * length):
        previous = brokers[place]
        step = step if 0 <= place + step < length else -step
        place += step
        ends = not 0 <= place + step < length
        assert guess(previous, brokers[place]) == brokers[place - step if ends else place + step]


def test_no_guess_at_a_crossing_or_at_the_start() -> None:
    crossing = {"x": ["n", "e", "s"], "n": ["x"], "e": ["x"], "s": ["x"]}
    assert LastDirection(crossing).predict("n", "x") == ""
    assert LastDirection(street(["a", "b", "c"])).predict("", "b") == ""
    assert LastDirection(crossing).predict("x", "elsewhere") == ""


@given(journeys, journeys, st.sampled_from(["", *"abcd"]), st.sampled_from("abcde"))
def test_markov_counts(first: list[list[str]], then: list[list[str]], previous: str, here: str) -> None:
    class Last:
        def predict(self, previous: str, here: str) -> str:
            return "fallback"

    learned = Markov(fallback=Last()).learn(first).learn(then)
    same: Counter[str] = Counter()
    any_: Counter[str] = Counter()
    for journey in first + then:
        for before, (one, after) in zip(["", *journey], pairwise(journey), strict=False):
            any_[after] += one == here
            same[after] += one == here and before == previous and previous != ""
    counts = +same or +any_
    wanted = min((b for b in counts if counts[b] == max(counts.values())), default="fallback")
    assert learned.predict(previous, here) == wanted


def test_learning_changes_nothing_that_was_known() -> None:
    before = Markov().learn([["a", "b"]])
    before.learn([["a", "c"], ["a", "c"]])
    assert before.predict("", "a") == "b"
    assert Nowhere().predict("a", "b") == Markov().predict("a", "b") == ""
