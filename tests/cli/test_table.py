"""`fieldfare explain --table`: the page and the picture are whole, safe and true."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.matching.strategies import VECTORS, filters, trees
from typer.testing import CliRunner, Result

from fieldfare.cli import app
from fieldfare.cli.errors import InputError
from fieldfare.cli.formats.dialects import Dialect
from fieldfare.cli.formats.inputs import source_of
from fieldfare.cli.formats.table_files import read_table
from fieldfare.cli.pages.browser_filters import portable
from fieldfare.cli.pages.table import page
from fieldfare.cli.pages.table_svg import MOST_MERGERS, colour, picture, svg
from fieldfare.events import Event, EventError, cloudevents
from fieldfare.events import json as events_json
from fieldfare.filters import Filter, parse
from fieldfare.tables.cover_graph import cover_graph

SVG = "{http://www.w3.org/2000/svg}"
LINES = """\
# who wants what
ana: price < 100
ben: price < 50 AND symbol = 'ACME'

cy\tprice < 20
{"filter": "price < 20 AND symbol = 'ACME'", "interface": ["ana", "dan"]}
{"filter": "symbol = 'ACME'", "id": 7}
symbol = 'KODA'
"""
EVENT = '{"price": 12, "symbol": "ACME"}'


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, arguments)])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "table.txt"
    path.write_text(LINES, "utf-8")
    return path


class Reader(HTMLParser):
    """What is in a page: its tags, the texts of its scripts and styles, and all other text."""

    VOID = frozenset({"meta", "input", "link", "br", "img"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: dict[str, list[str]] = {"script": [], "style": []}
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag in self.inside:
            self.inside[tag].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in self.inside:
            self.inside[self.open[-1]][-1] += data
        else:
            self.text += data

    def data(self) -> Any:
        return json.loads(self.inside["script"][0])


def made(*texts: str) -> str:
    return page(
        picture(cover_graph((parse(text), f"n{number}") for number, text in enumerate(texts))), "a table", "poset"
    )


# Files


def test_a_line_is_a_filter_and_whose_it_is(file: Path) -> None:
    assert [(str(wanted), whose) for wanted, whose in read_table(source_of(str(file)), Dialect.NATIVE)] == [
        ("price < 100", "ana"),
        ("price < 50 AND symbol = 'ACME'", "ben"),
        ("price < 20", "cy"),
        ("price < 20 AND symbol = 'ACME'", "ana"),
        ("price < 20 AND symbol = 'ACME'", "dan"),
        ("symbol = 'ACME'", "7"),
        ("symbol = 'KODA'", None),
    ]


@pytest.mark.parametrize(
    ("name", "content", "dialect", "expected"),
    [
        (
            "t.jsonl",
            '{"filter": {"a": [1]}, "interface": "n", "dialect": "ruler"}\n',
            Dialect.NATIVE,
            [("ANY a = 1", "n")],
        ),
        ("t.txt", '{"a": [1]}\n', Dialect.RULER, [("ANY a = 1", None)]),
        ("t.txt", 'north\t{"a": [1]}\n', Dialect.RULER, [("ANY a = 1", "north")]),
        ("t.txt", "a = 'x: y'\n", Dialect.NATIVE, [("a = 'x: y'", None)]),
        ("t.txt", '"a: b" = 1\n', Dialect.NATIVE, [('"a: b" = 1', None)]),
    ],
)
def test_other_ways_to_write_a_table(
    tmp_path: Path, name: str, content: str, dialect: Dialect, expected: object
) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    assert [(str(wanted), whose) for wanted, whose in read_table(source_of(str(tmp_path / name)), dialect)] == expected


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"price <\n", r"t.txt:1: .*expected"),
        (b"\n{oops\n", r"t.txt:2: not JSON"),
        (b'{"interface": "n"}\n', r"t.txt:1: a line is an object such as"),
        (b'{"filter": "a = 1", "dialect": "latin"}\n', r"t.txt:1: the dialect is none of"),
        (b"# nothing\n", r"t.txt: there is no filter in it"),
        (b"a = '\xff'\n", r"t.txt:1: not UTF-8"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, content: bytes, problem: str) -> None:
    (tmp_path / "t.txt").write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_table(source_of(str(tmp_path / "t.txt")), Dialect.NATIVE)


# The command


def test_the_page(file: Path, tmp_path: Path) -> None:
    result = run("--table", file, "--event", EVENT, "--to", tmp_path / "t.html")
    assert result.exit_code == 0, result.output
    assert "6 filters, 3 roots, 1 merger:" in result.stderr
    read = Reader((tmp_path / "t.html").read_text("utf-8"))
    data = read.data()
    assert [node["filter"] for node in data["nodes"]][:3] == [
        "price < 100",
        "price < 50 AND symbol = 'ACME'",
        "price < 20",
    ]
    assert data["edges"] == [[0, 1], [0, 2], [1, 3], [2, 3], [4, 1]]
    assert data["mergers"][0]["filter"] == "symbol IN ('ACME', 'KODA')"
    assert data["events"] == [{"text": EVENT, "matched": [0, 1, 2, 3, 4]}]
    assert [one["name"] for one in data["interfaces"]] == ["ana", "ben", "cy", "dan", "7"]


def test_the_page_needs_nothing_from_elsewhere_and_lets_nothing_in(file: Path) -> None:
    read = Reader(run("--table", file).stdout)
    assert not [tag for tag, attributes in read.tags if "src" in attributes or "href" in attributes or tag == "link"]
    [policy] = [attributes["content"] for tag, attributes in read.tags if "http-equiv" in attributes]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", "".join(read.inside["script"] + read.inside["style"]))
    assert not [name for _, attributes in read.tags for name in attributes if name.startswith("on") or name == "style"]


def test_the_picture(file: Path) -> None:
    result = run("--table", file, "--svg", "--event", EVENT)
    root = ElementTree.fromstring(result.stdout)
    assert root.tag == f"{SVG}svg"
    nodes = [one for one in root.iter(f"{SVG}g") if "node" in (one.get("class") or "").split()]
    assert len(nodes) == 6
    assert sum("matched" in (one.get("class") or "") for one in nodes) == 5
    assert len([one for one in root.iter(f"{SVG}path") if (one.get("class") or "").startswith("edge")]) == 5
    assert len([one for one in root.iter(f"{SVG}path") if one.get("class") == "merger"]) == 1
    assert len(list(root.iter(f"{SVG}circle"))) == 6


def test_a_forest(file: Path) -> None:
    tree = json.loads(run("--table", file, "--structure", "forest", "--json").stdout)
    assert (tree["structure"], tree["roots"]) == ("forest", [0, 4, 5])
    assert len(tree["covers"]) == 3


def test_json(file: Path) -> None:
    tree = json.loads(run("--table", file, "--json", "--event", EVENT, "--event", "{}").stdout)
    assert tree["nodes"][3] == {"filter": "price < 20 AND symbol = 'ACME'", "interfaces": ["ana", "dan"]}
    assert [one["matches"] for one in tree["events"]] == [[0, 1, 2, 3, 4], []]
    assert tree["mergers"] == [{"pair": [4, 5], "filter": "symbol IN ('ACME', 'KODA')"}]


def test_the_sample_makes_a_page() -> None:
    result = run("--table", "sample:filters.txt")
    assert result.exit_code == 0
    assert len(Reader(result.stdout).data()["nodes"]) > 200


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "give a filter, --pattern TEXT or --table FILE"),
        (("a = 1", "--table", "x"), "and only one of them"),
        (("--table", "x", "--covers", "a = 1"), "leave out what compares a single one"),
        (("a = 1", "--svg"), "are for --table FILE"),
        (("a = 1", "--event", "{}", "--event", "{}"), "are for --table FILE"),
        (("--table", "no-such-file"), "no-such-file: No such file"),
        (("--table", "sample:filters.txt", "--event", "{"), "--event: not JSON"),
    ],
)
def test_what_cannot_be_used_is_said(arguments: tuple[str, ...], problem: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert problem in result.stderr


# Safety

NASTY = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]></style><img src=x onerror=alert(1)>",
    '" onload="alert(1)',
    "&lt;b&gt; @@DATA@@ \u2028 \u2029",
    "tab\t, bell \a, nul \0, text direction \u202e",
]


@pytest.mark.parametrize("nasty", NASTY)
def test_filters_and_interfaces_are_text_whatever_they_say(nasty: str) -> None:
    wanted, name = parse("a = :value", value=nasty), nasty
    shown = picture(cover_graph([(wanted, name), (parse("EXISTS a"), "plain")]))
    plain = Reader(made("a = 'x'", "EXISTS a"))
    read = Reader(page(shown, nasty, "poset"))
    assert [tag for tag, _ in read.tags if tag != "text"] == [tag for tag, _ in plain.tags if tag != "text"]
    assert len(read.inside["script"]) == 2
    assert read.data()["nodes"][0]["filter"] == str(wanted)
    assert read.data()["interfaces"][0]["name"] == nasty
    assert read.inside["script"][1] == plain.inside["script"][1]
    ElementTree.fromstring(svg(shown))


@given(st.lists(filters(), min_size=1, max_size=6))
@settings(max_examples=25)
def test_every_table_makes_a_whole_page_and_a_whole_picture(wanted: list[Filter]) -> None:
    shown = picture(cover_graph((filter, f"n{number % 3}") for number, filter in enumerate(wanted)))
    assert [node["filter"] for node in Reader(page(shown, "t", "poset")).data()["nodes"]] == [
        str(f) for f in shown.graph.filters
    ]
    ElementTree.fromstring(svg(shown))


def test_too_many_mergers_are_not_drawn() -> None:
    shown = picture(cover_graph((parse(f"a = {number}"), None) for number in range(13)))
    assert len(shown.graph.mergers) == 78 > MOST_MERGERS
    assert "merger" not in svg(shown, style="")
    data = Reader(page(shown, "t", "poset")).data()
    assert (data["mergersDrawn"], len(data["mergers"])) == (False, 78)


def test_many_interfaces_have_many_colours_and_few_dots() -> None:
    names = [f"n{number}" for number in range(30)]
    assert len({colour(number) for number in range(30)}) == 30
    text = svg(picture(cover_graph((parse("a = 1"), name) for name in names)))
    assert text.count("<circle") == 12
    assert "+18" in text


def test_a_long_filter_is_cut_short_in_its_box_and_whole_in_its_title() -> None:
    wanted = parse(" AND ".join(f"field_{number} = {number}" for number in range(40)))
    text = svg(picture(cover_graph([(wanted, None)])))
    assert "…</text>" in text
    assert "field_39 = 39" in text


# The matcher of the page

MATCHER = resources.files("fieldfare") / "data" / "table" / "matcher.js"
PROGRAM = """
const matcher = require(process.argv[1]);
const { filters, events } = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const answer = (wanted, fields) => (fields === null ? null : matcher.matches(wanted, fields));
const fields = events.map((text) => { try { return matcher.fieldsOf(JSON.parse(text)); } catch { return null; } });
console.log(JSON.stringify(filters.map((wanted) => fields.map((one) => answer(wanted, one)))));
"""
needs_node = pytest.mark.needs("Node.js")


def in_a_browser(wanted: list[Filter], texts: list[str]) -> list[list[bool | None]]:
    done = subprocess.run(
        ["node", "-e", PROGRAM, str(MATCHER)],
        input=json.dumps({"filters": [portable(one) for one in wanted], "events": texts}),
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    answers: list[list[bool | None]] = json.loads(done.stdout)
    return answers


def decoded(text: str) -> Event | None:
    try:
        event = events_json.decode(text)
        return cloudevents.decode(text) if "specversion" in event.tree else event
    except EventError:
        return None


@needs_node
def test_the_page_never_says_what_python_would_not() -> None:
    wanted = [parse(text) for text in VECTORS]
    trees = [tree for yes, no in VECTORS.values() for tree in (*yes, *no)]
    texts = list(dict.fromkeys(events_json.encode(Event(tree)).decode() for tree in trees))
    texts += [
        '{"time": "2026-01-01T12:00:00Z", "b": {"$time": "2026-01-01t13:00:00.5+01:00"}}',
        '{"b": {"$time": "2026-02-30T00:00:00Z"}}',
    ]
    unknown = 0
    for filter, answers in zip(wanted, in_a_browser(wanted, texts), strict=True):
        for text, answer in zip(texts, answers, strict=True):
            event = decoded(text)
            if answer is None:
                unknown += 1
            elif event is not None:
                assert answer == filter.matches(event), (str(filter), text)
    assert unknown < 0.2 * len(wanted) * len(texts), "most can be told without Python"


@needs_node
@given(data=st.data())
@settings(max_examples=3)
def test_the_page_agrees_with_python_on_random_filters_and_events(data: st.DataObject) -> None:
    wanted = data.draw(st.lists(filters(), min_size=8, max_size=20))
    events = [Event(tree) for tree in data.draw(st.lists(trees, min_size=8, max_size=20))]
    texts = [events_json.encode(event).decode() for event in events]
    for (filter, answers), (number, event) in itertools.product(
        zip(wanted, in_a_browser(wanted, texts), strict=True), enumerate(events)
    ):
        assert answers[number] in (None, filter.matches(event)), (str(filter), texts[number])


@needs_node
@pytest.mark.parametrize(
    ("text", "event", "answer"),
    [
        ("s > '\ufffd'", '{"s": "\U00010000"}', True),
        ("s ENDS WITH 'b_c'", '{"s": "ab\U0001f600c"}', False),
        ("s LIKE '%b_c'", '{"s": "ab\U0001f600c"}', True),
        ("s ILIKE 'A%b'", '{"s": "ab"}', None),
        ("a * 2 > 3", '{"a": 5}', None),
        ("a * 2 > 3 AND b = 1", '{"a": 5, "b": 2}', False),
        ("a * 2 > 3 OR b = 1", '{"a": 5, "b": 1}', True),
        ("a > 9007199254740993", '{"a": 3}', None),
        ("a < INFINITY", '{"a": 3}', True),
        ("a > 1", '{"a": {"$interval": [0, 5]}}', None),
        ("a > 1", '{"a": 1e999}', None),
        ("time < TIMESTAMP '2026-01-01T00:00:00Z'", '{"time": "2025-12-31T23:59:59.999999Z"}', True),
        ("time < TIMESTAMP '2026-01-01T00:00:00Z'", '{"time": "2026-01-01T00:30:00.1+01:00"}', True),
        ("ANY t = 'a' AND ALL t IN ('a', 'b')", '{"t": ["a", ["b"]]}', True),
        ("ANY u.id = 7", '{"u": [{"id": 6}, {"id": [7]}]}', True),
        ("a = 1", '{"a.b": 1, "a": {"b": 2}}', None),
        ("a = 1", "[1]", None),
        ("a = 1", '{"specversion": "1.0", "a": 1}', None),
    ],
)
def test_what_the_page_can_tell(text: str, event: str, answer: bool | None) -> None:
    assert in_a_browser([parse(text)], [event]) == [[answer]]
