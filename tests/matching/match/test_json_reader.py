"""JSON texts matched by the fields that filters look at: always the answer, or the error, of the full reader."""

from __future__ import annotations

import json as stdlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.events.json_texts import damaged, objects
from tests.examples import few
from tests.matching.strategies import filters, modes, trees

from fieldfare.events import Event, EventError, cloudevents, json
from fieldfare.filters import Filter, parse
from fieldfare.filters.constraint import Mode
from fieldfare.matching.index import Index
from fieldfare.matching.match import field_decoders, json_reader

FILTERS = [
    "a = 1", "NOT EXISTS a", "a = NULL", "b.c = 1", "b.c > 'm'", "NOT (b.c = 1)", "ANY b.c = 2", "b.c.d = 'x'",
    "EXISTS b.c.d", "a.b = 1", "EXISTS a", "u HAS (x = 1)", "NOT (u HAS (x = 1))", "s CONTAINS 'x'", "a + k > 2",
    "time > TIMESTAMP '2026-01-01T00:00:00Z'", "time = 'x'", "k IS NUMBER", "k IS BOOL", "LENGTH(s) > 2",
]  # fmt: skip
LAYOUTS: list[Callable[[object], str]] = [
    stdlib.dumps,
    lambda tree: stdlib.dumps(tree, separators=(",", ":")),
    lambda tree: stdlib.dumps(tree, separators=(" ,\t", "\r: "), ensure_ascii=False),
    lambda tree: stdlib.dumps(tree, indent=1),
]


def index_of(wanted: Iterable[str | Filter], kernels: str = "numba") -> Index[int]:
    return Index(enumerate(wanted), kernels=kernels)


ALL = index_of(FILTERS)
MANY = index_of([*FILTERS, *(f"n{n} = 1" for n in range(70))])
"""looks at so many fields that whole objects are decoded"""


def outcome(match: Callable[[], Iterable[Any]]) -> object:
    """The ids, sorted, or the text of the error."""
    try:
        return sorted(match())
    except EventError as error:
        return f"{error.field}: {error.problem}"


def check(index: Index[int], text: bytes | str, mode: Mode = "overlaps") -> None:
    assert outcome(lambda: index.match_json(text, mode)) == outcome(lambda: index.match(json.decode(text), mode))
    raw = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    line = raw.removesuffix(b"\n")  # the end of a line is no part of the line, which shows in the place of an error
    if line and not line.isspace():
        expected = outcome(lambda: index.match(json.decode(line), mode))
        found = outcome(lambda: _ids(index.match_json_lines([text], mode)))
        assert found == (f"{expected} (line 1)" if isinstance(expected, str) else expected)


@given(st.lists(filters(), max_size=4), st.lists(trees, max_size=4), modes, st.sampled_from(LAYOUTS))
def test_events_match_as_they_do_when_decoded_whole(
    wanted: list[Filter], given_trees: list[dict[str, object]], mode: Mode, layout: Callable[[object], str]
) -> None:
    index = index_of(wanted)
    events = [Event(tree) for tree in given_trees]
    texts = [layout(stdlib.loads(json.encode(event))) for event in events]
    for event, text in zip(events, texts, strict=True):
        assert sorted(index.match_json(text, mode)) == sorted(index.match(event, mode))
    expected = [(line, id) for line, event in enumerate(events) for id in sorted(index.match(event, mode))]
    found = index.match_json_lines(texts, mode)
    assert sorted(zip(found["event"].to_pylist(), found["id"].to_pylist(), strict=True)) == expected


@given(objects)
@example('{"a":1,"a":2}')
@example('{"z":{"y":1,"y":2}}')
@example('{"b":{"c":1},"b.c":2}')
@example('{"b.c":{"d":1},"b":{"c.d":2}}')
@example('{"b.c":{"d":"x"}}')
@example('{"b":{"c.d":"x"}}')
@example('{"u.x":1}')
@example('{"u.z":1}')
@example('{"b":[{"c":1},{"c":2}]}')
@example('{"b":null}')
@example('{"b":[[{"c":2}]],"b.c":1}')
@example("[1]")
@example('{"a":1}{"a":1}')
@example('{"a":1} {}')
@example('{"z":' + "[" * 31 + "]" * 31 + "}")
@example('{"z":' + "[" * 32 + "]" * 32 + "}")
@example('{"z":' + "[" * 5000 + "]" * 5000 + "}")
@example('{"z":[' + ",".join("1" * 4096) + "]}")
@example('{"z":[' + ",".join("1" * 4097) + "]}")
@example("{" + ",".join(f'"n{n}":1' for n in range(300)) + "}")
@example("{" + ",".join(f'"n{n}":1' for n in range(4097)) + "}")
@example('{"z":"' + "x" * (1 << 18) + '"}')
@example('{"z":"' + "x" * (1 + (1 << 18)) + '"}')
@example('{"a":"' + "x" * (1 << 20) + '"}')
@example('{"z":{"$time":"noon"}}')
@example('{"z":"\ud800"}')
def test_hostile_texts_are_refused_as_by_the_full_reader(text: str) -> None:
    check(ALL, text)
    check(MANY, text)


@given(damaged)
def test_damaged_texts_are_refused_as_by_the_full_reader(raw: bytes) -> None:
    check(ALL, raw)
    check(MANY, raw)


@given(st.lists(objects | st.sampled_from(["", " ", "\t\r"]), max_size=6))
@few(50)
def test_lines_match_as_they_do_one_by_one(given_texts: list[str]) -> None:
    lines = [text.replace("\n", " ") for text in given_texts]

    def singly() -> list[tuple[int, int]]:
        found = []
        for number, line in enumerate(lines):
            if line and not line.isspace():
                try:
                    found += [(number, id) for id in ALL.match(json.decode(line))]
                except EventError as error:
                    raise EventError(error.field, f"{error.problem} (line {number + 1})") from None
        return found

    expected = outcome(singly)
    data = "\n".join(lines)
    for form in (lines, data, data.encode(), data + "\n", [line + "\n" for line in lines], iter(lines)):
        assert outcome(lambda form=form: _pairs(ALL.match_json_lines(form))) == expected  # type: ignore[misc]


def _ids(found: Any) -> list[int]:
    return found["id"].to_pylist()  # type: ignore[no-any-return]


def _pairs(found: Any) -> list[tuple[int, int]]:
    events = found["event"].to_pylist()
    assert events == sorted(events)
    return list(zip(events, found["id"].to_pylist(), strict=True))


ROWS: list[dict[str, Any]] = [
    {"a": 1}, {"a": 1.0}, {"a": "1"}, {"a": None}, {"a": True}, {"a": [1]}, {}, {"a": {"b": 1}}, {"b": {"c": 2}}, {"b": [{"c": 2}]},
    {"b": {"c": {"d": "x"}}}, {"b": 1}, {"b.c": 1}, {"k": 2**53 + 1, "a": 1}, {"k": 2**53 + 1}, {"k": 0.5}, {"k": 1},
    {"time": "x"}, {"time": "2026-11-15T09:30:00Z"}, {"s": "xé"}, {"s": "axe"}, {"u": {"x": 1}}, {"u": [{"x": 2}]},
]  # fmt: skip


@pytest.mark.parametrize("kernels", ["numba", "numpy"])
@pytest.mark.parametrize("settled", [False, True])
def test_columns_hold_values_of_all_kinds(kernels: str, settled: bool) -> None:
    index = index_of(FILTERS, kernels)
    if settled:
        index.compact()
    lines = [stdlib.dumps(row, ensure_ascii=False) for row in ROWS]
    expected = [(row, id) for row, line in enumerate(lines) for id in sorted(index.match(json.decode(line)))]
    assert sorted(_pairs(index.match_json_lines(lines))) == expected
    assert sorted(_pairs(index.match_json_lines("\n".join(lines)))) == expected


def test_a_text_of_several_lines_is_one_element_of_a_list() -> None:
    index = index_of(["a = 1"])
    assert _pairs(index.match_json_lines(['{"a":\n1}', '{"a": 1}'])) == [(0, 0), (1, 0)]
    with pytest.raises(EventError, match=r"line 1"):
        index.match_json_lines('{"a":\n1}\n{"a": 1}')


def test_more_lines_than_are_decoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_reader, "LINES", 3)
    index = index_of(["a = 1", "s CONTAINS 'x'"])
    lines = [stdlib.dumps({"a": n % 2, "s": "x" * (n % 3)}) for n in range(20)]
    expected = [(n, id) for n, line in enumerate(lines) for id in sorted(index.match(json.decode(line)))]
    for form in (lines, "\n".join(lines), "\n".join(lines) + "\n"):
        assert sorted(_pairs(index.match_json_lines(form))) == expected
    lines[17] = '{"a": 1, "a": 2}'
    for form in (lines, "\n".join(lines)):
        with pytest.raises(EventError, match=r"field 'a': named twice \(line 18\)"):
            index.match_json_lines(form)


def test_a_filter_with_another_field_is_looked_at_from_then_on() -> None:
    index: Index[str] = Index([("a", "a = 1")], kernels="numba")
    text = '{"a": 1, "b": {"c": 2, "s": "xyz"}}'
    assert index.match_json(text) == ["a"]
    index.add("b", "b.c = 2")
    assert sorted(index.match_json(text)) == ["a", "b"]
    index.add("s", "b.s CONTAINS 'y'")
    assert sorted(index.match_json(text)) == ["a", "b", "s"]
    index.add_many((f"n{n}", f"b.s CONTAINS 'z' AND n{n} IS MISSING") for n in range(300))
    assert len(index.match_json(text)) == 303
    assert len(index.match_json_lines(text)) == 303
    index.add("p", "PATH('//b', c = 2)")
    assert "p" in index.match_json(text)
    opened = Index.open(index.snapshot(), kernels="numba")
    assert sorted(opened.match_json(text)) == sorted(index.match_json(text))


def test_fields_that_come_during_a_match_are_read() -> None:
    index: Index[str] = Index([("a", "a = 1")], kernels="numba")
    reader = index._json[0]
    real = reader.fields

    def fields(text: Any, decoders: Any) -> Any:
        found = real(text, decoders)
        index.update("a", "b = 2")  # at every moment, the old or the new filter matches
        return found

    reader.fields = fields  # type: ignore[method-assign]
    assert index.match_json('{"a": 1, "b": 2}') == ["a"]
    index.update("a", "a = 1")
    index._json = (reader, reader)
    assert index.match_json_lines('{"a": 1, "b": 2}')["id"].to_pylist() == ["a"]


CLOUD = {"specversion": "1.0", "id": "1", "source": "/till", "type": "sale", "time": "2026-11-15T09:30:00Z", "n": None}


def test_cloudevents_are_read_as_such_if_asked() -> None:
    index = index_of(["EXISTS n", "NOT EXISTS n", "data.a = 1", "EXISTS data_base64", "type = 'sale'"])
    texts = [
        stdlib.dumps(tree) for tree in ({**CLOUD, "data": {"a": 1}}, {**CLOUD, "data_base64": "AQI="}, {"n": None})
    ]
    expected = [(row, id) for row, text in enumerate(texts) for id in index.match(cloudevents.decode_any(text))]
    assert [(row, id) for row, text in enumerate(texts) for id in index.match_json(text, cloudevents=True)] == expected
    assert sorted(_pairs(index.match_json_lines(texts, cloudevents=True))) == sorted(expected)
    assert 0 in index.match_json(texts[0])
    with pytest.raises(EventError, match="source"):
        index.match_json('{"specversion": "1.0", "id": "1"}', cloudevents=True)


def test_an_index_without_filters_still_reads() -> None:
    index: Index[int] = Index(kernels="numba")
    assert index.match_json('{"a": 1}') == []
    assert index.match_json_lines(b"").num_rows == 0
    assert index.match_json_lines([]).num_rows == 0
    with pytest.raises(EventError):
        index.match_json("")
    everything: Index[int] = Index([(1, "EXISTS a OR NOT EXISTS a")], kernels="numba")
    assert _pairs(everything.match_json_lines('{"b": 1}\n\n{}')) == [(0, 1), (2, 1)]


def test_skipped_values_are_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Event:
        raise AssertionError("the full reader was called")

    index = index_of(["a = 1", "b.c = 'x'", "time > TIMESTAMP '2026-01-01T00:00:00Z'"])
    monkeypatch.setattr(json, "decode", refuse)
    monkeypatch.setattr(field_decoders, "Event", refuse)
    text = '{"a": 1, "b": {"c": "x", "é": [1.5e2, -3]}, "z": {"y": [[{"a": 1}]], "a": "\\n"}, "time": "2026-02-01T00:00:00Z"}'
    assert sorted(index.match_json(text)) == [0, 1, 2]
    assert sorted(index.match_json_lines([text, text])["id"].to_pylist()) == [0, 0, 1, 1, 2, 2]


def test_a_path_of_many_names_takes_no_time() -> None:
    deep = ".".join("a" * 200)
    index = index_of([f"{deep} = 1", "a = 1"])
    assert index.match_json('{"a": 1}') == [1]
    assert index.match_json(stdlib.dumps({deep: 1})) == [0]


def test_names_that_json_must_escape() -> None:
    index = index_of(['"a\\b" = 1', '"a\'b" = 1', "é = 1"])
    for tree in ({"a\\b": 1}, {"a'b": 1}, {"é": 1}):
        text = stdlib.dumps(tree)
        assert index.match_json(text) == index.match(json.decode(text)) != []
    assert parse('"a\\b" = 1').fields() == {"a\\b"}
