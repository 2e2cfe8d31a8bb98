"""Events of every shape, for hypothesis, and the comparison that round trips must pass."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from hypothesis import strategies as st

from fieldfare.events import Event, Interval

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)

integers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)])
floats = st.floats() | st.sampled_from([-0.0, math.nan, math.inf, -math.inf, 5e-324, 1e16, 1e22])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "\U0010ffff", '":', '"', "\\", "a\nb", "\x00", ":", "2026-11-15T09:30:00Z", "NaN"]
)
datas = st.binary(max_size=8)
times = st.datetimes(timezones=st.just(UTC)).map(lambda time: time.replace(fold=0)) | st.sampled_from(
    [FIRST, LAST, datetime(2026, 11, 15, 9, 30, tzinfo=UTC)]
)
scalars = st.none() | st.booleans() | integers | floats | texts | datas | times


@st.composite
def intervals(draw: st.DrawFn, ends: st.SearchStrategy[object] | None = None) -> Interval:
    """Intervals of numbers, strings, bytes and timestamps, bounded or not."""
    numbers = integers | st.floats(allow_nan=False)
    chosen = ends if ends is not None else draw(st.sampled_from([numbers, texts, datas, times]))
    low, high = sorted([draw(chosen), draw(chosen)])  # type: ignore[type-var]
    closed = "[]" if low == high else draw(st.sampled_from(["[]", "[)", "(]", "()"]))
    bounds = draw(st.sampled_from([(low, high), (None, high), (low, None)]))
    return Interval(*bounds, closed)  # type: ignore[arg-type]


tag_names = st.sampled_from(["$time", "$bytes", "$float", "$interval", "$literal", "$ref", "time", "id", "a"])
names = tag_names | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="."), max_size=4)
values = st.recursive(
    scalars | intervals(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
trees = st.dictionaries(names, values, max_size=6)
periods = st.none() | intervals(times)
events = st.builds(lambda tree, valid: Event(tree, valid=valid), trees, periods)


def same(left: object, right: object) -> bool:
    """Whether two values are the same to the last bit: 1 is not 1.0, -0.0 is not 0.0, and NaN is NaN."""
    if isinstance(left, Event) and isinstance(right, Event):
        return same(left.tree, right.tree) and same(left.valid, right.valid)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, Interval) and isinstance(right, Interval):
        return same((left.low, left.high, left.closed), (right.low, right.high, right.closed))
    return repr(left) == repr(right)
