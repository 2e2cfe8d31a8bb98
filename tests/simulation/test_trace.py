from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.events.strategies import events, same

from fieldfare.filters import parse
from fieldfare.simulation import trace as records
from fieldfare.simulation.trace import Record
from fieldfare.simulation.trace_files import SCHEMA, from_arrow, read, to_arrow, write

names = st.sampled_from(["a", "b", "ä"])
counts = st.integers(0, 9)
fields: dict[str, st.SearchStrategy[object]] = {
    "time": st.floats(0, 1e6),
    "event": events,
    "filter": st.sampled_from([parse("a < 5"), parse("a = 1 OR NOT b LIKE '%x'"), parse("TRUE")]),
    "subscriptions": st.lists(names).map(tuple),
    "kept": st.booleans(),
    "redelivered": st.booleans(),
    "ttl": st.floats(0, 1e6),
} | dict.fromkeys(["order", "sequence", "channel_number", "added", "removed"], counts)
traces = st.lists(
    st.sampled_from(sorted(records.KINDS)).flatmap(
        lambda kind: st.builds(
            records.KINDS[kind], **{name: fields.get(name, names) for name in records.KINDS[kind]._fields}
        )
    ),
    max_size=5,
)


def alike(a: Record, b: Record) -> bool:
    return type(a) is type(b) and all(same(x, y) if hasattr(x, "tree") else x == y for x, y in zip(a, b, strict=True))


@given(traces)
def test_a_trace_is_read_as_it_was_written(trace: list[Record]) -> None:
    again = from_arrow(to_arrow(trace))
    assert len(again) == len(trace)
    assert all(map(alike, again, trace))


def test_a_trace_in_a_file(tmp_path: Path) -> None:
    trace: list[Record] = [records.Up(0.0, 0, "a", "b"), records.Restarted(1.0, 1, "b", True), records.Quiet(1.0, 2)]
    write(trace, str(tmp_path / "trace.parquet"))
    assert read(str(tmp_path / "trace.parquet")) == trace


def test_every_field_has_a_column() -> None:
    used = {name for kind in records.KINDS.values() for name in kind._fields}
    assert used | {"kind"} == set(SCHEMA.names)
