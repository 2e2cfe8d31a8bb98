from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.node.config import (
    duration,
    size,
)
from fieldfare.node.config.quantities import SIZES, TIMES


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("1B", 1), ("1kB", 1000), ("1 KB", 1000), ("1KiB", 1024), ("1.5MB", 1_500_000), ("2GiB", 2 << 30), (" 3 TB ", 3 * 10**12), ("0.1KiB", 102)],
)  # fmt: skip
def test_sizes(text: str, number: int) -> None:
    assert size(text) == number


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1e3", "1 M B", "1XB", "1.MB", "٣MB", "1m", "1" * 16])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="as 64MB"):
        size(text)


@given(st.integers(0, 10**12), st.sampled_from(sorted(SIZES)))
def test_a_size_is_exact(number: int, unit: str) -> None:
    assert size(f"{number}{unit}") == number * SIZES[unit]


@given(st.integers(0, 10**9), st.sampled_from(["s", "m", "h", "d", "w"]))
def test_a_duration_is_exact(number: int, unit: str) -> None:
    assert duration(f"{number}{unit}") == number * TIMES[unit]
