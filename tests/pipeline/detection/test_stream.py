"""The step of a stream for a key, without Spark: the same composite events as from the history, in whatever batches."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st
from tests.examples import few
from tests.patterns.test_language import FILTERS
from tests.patterns.trees import offers
from tests.pipeline.detection.test_history import TIMED, in_order, prepared, sent

from fieldfare.patterns import Pattern, parse_pattern
from fieldfare.patterns.runs import NEVER, Offer
from fieldfare.patterns.stamps import SECOND, Occurrence
from fieldfare.pipeline.detection import touching
from fieldfare.pipeline.detection.operator import history
from fieldfare.pipeline.detection.segments import ATOMS, FIELD, GROUP
from fieldfare.pipeline.detection.stream import Kept, step

END = 40 * SECOND


class Keys:
    """Keys of a stream, as Spark calls them: for events, and when their time has come."""

    def __init__(self, patterns: dict[str, Pattern], *, ties: bool) -> None:
        self.prepared, self.layout = prepared(patterns)
        self.ties = ties
        self.way = touching.schema(self.layout, [pa.int64()] if ties else [])
        self.kept: dict[Any, tuple[bytes, int]] = {}
        self.found: list[dict[str, Any]] = []

    def batch(self, events: list[Occurrence], passed: int) -> None:
        """A micro-batch, with the watermark that it begins with."""
        rows = pa.Table.from_batches(
            [touching.touching(self.prepared, self.layout, self.way, sent(events, self.ties))], self.way
        )
        of: dict[Any, list[int]] = {}
        for at, row in enumerate(rows.to_pylist()):
            key = (row[GROUP], *(row[FIELD + path] for path in self.prepared.keys[row[GROUP]]))
            of.setdefault(key, []).append(at)
        due = [key for key, (_, wake) in self.kept.items() if wake <= passed]
        for key in sorted({*of, *due}, key=repr):
            taken = rows.take(pa.array(of.get(key, []), pa.int64())).combine_chunks().to_batches()
            kept, _ = self.kept.pop(key, (b"", NEVER))
            before = msgspec.msgpack.decode(kept, type=Kept) if kept else Kept()
            done = step(self.prepared, self.layout, self.way, before, taken, passed)
            if done.kept is not None:
                self.kept[key] = msgspec.msgpack.encode(done.kept), done.wake
            if done.found is not None:
                self.found += done.found.to_pylist()


def offered(low: int, high: int, labels: str, number: int) -> Offer:
    fields = {"name": f"{labels}{number}", "v": 0}
    event = Occurrence(low * SECOND, high * SECOND, fields, "", number)
    return Offer(event, event.key, frozenset(labels), fields)


ONE_END = [offered(0, 1, "A", 0), offered(1, 1, "AB", 2), offered(4, 4, "A", 1), offered(4, 4, "A", 3)]
"""an interval and a point of the same end, which are not tied, then two events that are"""


@few(60)
@example(["a followed by b"], ONE_END, Random(3), True)
@given(
    st.lists(st.sampled_from(TIMED), min_size=1, max_size=3),
    offers(12),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_a_stream_tells_what_the_history_tells(texts: list[str], story: list[Offer], random: Any, ties: bool) -> None:
    patterns = {f"p{number}": parse_pattern(text, FILTERS) for number, text in enumerate(texts)}
    events = in_order(story)
    keys = Keys(patterns, ties=ties)
    late = 3 * SECOND
    left = sorted(events, key=lambda event: event.high + random.randint(0, late - 1))
    passed = seen = -1
    while left:
        some = random.randint(1, 4)
        keys.batch(left[:some], passed)
        seen = max(seen, *(event.high for event in left[:some]))
        left, passed = left[some:], max(passed, seen - late)
    for _ in range(9):  # a timer may start another
        keys.batch([], END)
    rows = touching.touching(keys.prepared, keys.layout, keys.way, sent(events, ties))
    whole = history(keys.prepared, keys.layout, pa.Table.from_batches([rows], keys.way), END + 1).to_pylist()
    assert sorted(keys.found, key=lambda row: str(row["id"])) == sorted(whole, key=lambda row: str(row["id"]))


def test_the_state_of_a_key_ends() -> None:
    keys = Keys({"p": parse_pattern("(a followed by b) within 2s for each v", FILTERS)}, ties=False)

    def event(second: int, number: int, **fields: Any) -> Occurrence:
        told = {"name": str(number), "v": 1, **fields}
        return Occurrence(second * SECOND, second * SECOND, told, "", number)

    keys.batch([event(1, 0, A=1)], -1)
    assert len(keys.kept) == 1
    keys.batch([event(2, 1, B=1), event(1, 2, B=1)], SECOND)  # the last one is late
    keys.batch([], 2 * SECOND)
    assert (len(keys.found), keys.kept) == (1, {})
    assert [one["event"]["name"] for one in keys.found[0]["constituents"]] == ["0", "1"]
    keys.batch([event(3, 3, A=1)], 2 * SECOND)
    keys.batch([], 4 * SECOND)
    assert len(keys.kept) == 1
    keys.batch([], 5 * SECOND)
    assert (len(keys.found), keys.kept) == (1, {})
    assert ATOMS not in keys.found[0]
