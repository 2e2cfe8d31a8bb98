"""Delays double up to a bound, jitter stays within its bounds, and `call` gives up after the last attempt."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare import retry
from fieldfare.retry import Backoff


def test_delays_double_up_to_the_longest() -> None:
    assert list(islice(Backoff(0.1, 1.0).delays(), 6)) == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_limited_attempts_have_one_delay_less() -> None:
    assert list(Backoff(1.0, 4.0, attempts=4).delays()) == [1.0, 2.0, 4.0]
    assert list(Backoff(1.0, 4.0, attempts=1).delays()) == []


def test_jitter_is_a_factor_of_the_bounded_delay() -> None:
    backoff = Backoff(1.0, 4.0, (0.5, 1.5))
    assert list(islice(backoff.delays(min), 4)) == [0.5, 1.0, 2.0, 2.0]
    assert list(islice(backoff.delays(max), 4)) == [1.5, 3.0, 6.0, 6.0]


@given(st.floats(1e-3, 10), st.floats(1e-3, 100), st.integers(1, 10_000))
def test_delays_stay_within_the_bounds(first: float, longest: float, failed: int) -> None:
    assert 0 < Backoff(first, longest, (0.5, 1.0)).delay(failed) <= longest


def test_a_call_ends_with_the_first_success() -> None:
    slept: list[float] = []
    answers = iter([OSError("away"), OSError("away"), "here"])

    def work() -> str:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return str(answer)

    assert retry.call(work, Backoff(1.0, 8.0, attempts=5), OSError, slept.append) == "here"
    assert slept == [1.0, 2.0]


def test_a_call_raises_the_error_of_the_last_attempt() -> None:
    slept: list[float] = []
    errors = [OSError("first"), OSError("second"), OSError("third")]
    rest = iter(errors)

    def work() -> None:
        raise next(rest)

    with pytest.raises(OSError, match="third"):
        retry.call(work, Backoff(1.0, 8.0, attempts=3), OSError, slept.append)
    assert slept == [1.0, 2.0]


def test_other_errors_are_not_retried() -> None:
    calls: list[float] = []

    def work() -> None:
        calls.append(1.0)
        raise KeyError("mistake")

    with pytest.raises(KeyError):
        retry.call(work, Backoff(1.0, 8.0, attempts=3), OSError, calls.append)
    assert len(calls) == 1
