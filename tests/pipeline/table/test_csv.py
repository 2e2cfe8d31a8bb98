from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.cli.formats.event_files import BadEvent, EventsFormat, read_events
from fieldfare.cli.formats.inputs import Source
from fieldfare.events import Event, json
from fieldfare.pipeline.table.csv import Row, read_csv

lines = st.lists(
    st.sampled_from(["12", "1.5", "TRUE", "007", "x", "", '"', '"a\nb"', ",", "2026-11-15T09:30:00Z", "é", "1e999"]),
    max_size=5,
)


@given(
    st.lists(lines.map(",".join), max_size=6), st.sampled_from(["\n", "\r\n"]), st.sampled_from([b"", b"\xef\xbb\xbf"])
)
def test_csv_is_read_as_the_command_reads_it(rows: list[str], end: str, mark: bytes) -> None:
    content = mark + end.join(["a,b,c", *rows, ""]).encode()
    expected = list(read_events(_source(content), EventsFormat.CSV))
    found = list(read_csv(content))
    assert [row.problem is None for row in found] == [not isinstance(one, BadEvent) for one in expected]
    for row, one in zip(found, expected, strict=True):
        if isinstance(one, Event):
            assert json.decode(row.event) == one
        else:
            assert row.event.decode() in content.decode()
            assert one.place == f"x.csv:{row.line}"


def _source(content: bytes) -> Source:
    return Source("x.csv", lambda: io.BytesIO(content))


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"zip,n\n007,1\n12,2", [Row(b'{"zip":"007","n":1}', None, 2), Row(b'{"zip":"12","n":2}', None, 3)]),
        (b"zip,zip\n1,2\n", [Row(b"1,2", "two columns of the file have the same name", 2)]),
        (b"zip\n\xff\r\n", [Row(b"\xff", "not UTF-8", 2)]),
        (b"zip\n1,2\n", [Row(b"1,2", "2 cells, but the header names 1", 2)]),
        (b'"zip\n1,2\n', []),
        (b"", []),
    ],
)
def test_rows(content: bytes, rows: list[Row]) -> None:
    assert list(read_csv(content, {"zip"})) == rows
