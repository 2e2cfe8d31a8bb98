from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from tests.examples import few
from tests.filters.languages.sigma import oracle

from fieldfare.filters import Filter
from fieldfare.filters import parse as parse_native
from fieldfare.filters.dialects import Dialect, read
from fieldfare.filters.errors import FilterDocumentError
from fieldfare.filters.languages import sigma
from fieldfare.filters.languages.sigma import LogSchema
from fieldfare.matching import Index
from fieldfare.toml import TomlError

# Rules and events over the same few fields and texts, so that many of them match.

WORDS = (
    "cmd.exe",
    "\\cmd.exe",
    "C:\\Windows\\cmd.exe",
    "-enc",
    "/enc x",
    "ENC",
    "",
    "4625",
    "10",
    "true",
    "a*c",
    "straße",
    "\N{LATIN SMALL LETTER LONG S}",
)
values = st.one_of(
    st.sampled_from(WORDS),
    st.text("aAbB\\*?-/ 1é", max_size=6),
    st.sampled_from([0, 10, 4625, 2.5, True, False, None]),
)
fields = st.sampled_from(["Image", "CommandLine", "EventID", "user.name"])
_TEXTS = ["contains", "startswith", "endswith", "windash|contains", "contains|windash", "cased", "contains|cased"]
texts = st.one_of(st.sampled_from(WORDS[:6]), st.text("aAbB\\*?- 1é", min_size=1, max_size=5))
plain_texts = st.text("abCD1é", min_size=1, max_size=6)


def listed(one: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[Any]:
    return st.one_of(one, st.lists(one, min_size=1, max_size=most))


@st.composite
def items(draw: st.DrawFn) -> tuple[str, Any]:
    field = draw(fields)
    kind = draw(st.integers(0, 9))
    if kind < 3:
        return field, draw(listed(values))
    if kind < 6:
        modifier = draw(st.sampled_from(_TEXTS))
        every = draw(st.sampled_from(["", "|all", "|neq"]))
        return f"{field}|{modifier}{every}", draw(listed(texts))
    key, value = draw(
        st.sampled_from([
            ("re", st.sampled_from(["^C:.*exe$", "[0-9]{2}", "(a|b)+c?"])),
            ("re|i", st.sampled_from(["ENC", "straSSE|cmd"])),
            ("cidr", st.sampled_from(["10.0.0.0/8", "2001:db8::/32"])),
            ("exists", st.booleans()),
            ("fieldref", fields),
            ("gte", st.sampled_from([0, 10, 2.5])),
            ("lt", st.sampled_from([0, 10, 2.5])),
            ("base64offset|contains", plain_texts),
            ("base64", plain_texts),
            ("wide|base64offset|contains", st.text("abc", min_size=2, max_size=3)),
        ])
    )  # fmt: skip
    return f"{field}|{key}", draw(value)


detections = st.one_of(
    st.lists(items(), min_size=1, max_size=3).map(dict),
    st.lists(st.lists(items(), min_size=1, max_size=2).map(dict), min_size=1, max_size=3),
    listed(st.text("abAB*1", min_size=1, max_size=3)),
    listed(st.text("abAB*1", min_size=1, max_size=3)).map(lambda words: {"|all": words}),
)
CONDITIONS = [
    "a", "not a", "a and not b", "a or b and not c1", "(a or b) and not c1", "1 of c*", "all of c*", "2 of them", "all of them",
    "a and not 1 of c*", "not (a and b) or c2", "not 2 of c*", "a and not all of c*",
]  # fmt: skip


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    named = {name: draw(detections) for name in ("a", "b", "c1", "c2", "_d")}
    source = draw(st.sampled_from([{}, {"product": "windows"}, {"product": "linux", "category": "x"}]))
    return {"logsource": source, "detection": {**named, "condition": draw(st.sampled_from(CONDITIONS))}}


single = st.one_of(values, st.sampled_from(["10.1.2.3", "2001:db8::1", "xx YWJj x", "aAb", "x -enc"]), texts)
found = st.one_of(single, st.lists(single, max_size=2))
events = st.fixed_dictionaries(
    {},
    optional={
        "Image": found,
        "CommandLine": found,
        "EventID": found,
        "user": st.fixed_dictionaries({}, optional={"name": found}),
        "message": st.text("abAB1 ", max_size=6),
        "logsource": st.sampled_from([{"product": "windows"}, {"product": "linux", "category": "x"}]),
    },
)


def is_read(rule: dict[str, Any]) -> Filter | None:
    try:
        return sigma.parse(rule)
    except FilterDocumentError as error:
        if "nothing can match" in str(error) or "dashes" in str(error):
            return None
        raise


@few(60)
@given(rules(), st.lists(events, min_size=1, max_size=6))
@example(
    {"detection": {"a": {"Image": None}, "condition": "not a"}}, [{}, {"Image": None}, {"Image": []}, {"Image": [None]}]
)
@example({"detection": {"a": {"Image|exists": True}, "condition": "not a"}}, [{}, {"Image": None}, {"Image": []}])
def test_a_rule_matches_as_the_oracle_does(rule: dict[str, Any], events: list[dict[str, Any]]) -> None:
    wanted = is_read(rule)
    for event in events:
        expected = oracle.matches(rule, event)
        assert (wanted is not None and wanted.matches(event)) == expected, (rule, event, str(wanted))


@few(6)
@given(st.lists(rules(), min_size=11, max_size=12), st.lists(events, min_size=1, max_size=5))
def test_the_index_finds_the_same_rules(given: list[dict[str, Any]], events: list[dict[str, Any]]) -> None:
    read_ones = {number: wanted for number, rule in enumerate(given) if (wanted := is_read(rule)) is not None}
    index = Index(read_ones.items(), kernels="numpy")
    for event in events:
        assert sorted(index.match(event)) == [number for number, one in read_ones.items() if one.matches(event)]
        assert sorted(index.match(event)) == [n for n, rule in enumerate(given) if oracle.matches(rule, event)]


@few(10)
@given(rules())
def test_the_native_language_and_yaml_keep_the_meaning(rule: dict[str, Any]) -> None:
    wanted = is_read(rule)
    if wanted is not None:
        assert parse_native(str(wanted)) == wanted
        assert read(yaml.safe_dump(rule, allow_unicode=True), Dialect.SIGMA) == wanted
        assert read(json.dumps(rule), Dialect.SIGMA) == wanted


def rule_of(condition: str = "a", **detections: Any) -> dict[str, Any]:
    return {"detection": {**detections, "condition": condition}}


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (rule_of(a={"x|hour": 5}), "at /detection/a/x|hour: the modifier hour is not supported"),
        (rule_of("a | count() > 5", a={"x": 1}), "aggregation"),
        (rule_of("1 of b*", a={"x": 1}), "no detection has a name like 'b*'"),
        (rule_of("3 of a*", a={"x": 1}), "3 detections are wanted"),
        (rule_of("a and", a={"x": 1}), "found the end"),
        (rule_of("(a", a={"x": 1}), "expected )"),
        (rule_of("b", a={"x": 1}), "there is no detection 'b'"),
        (rule_of("", a={"x": 1}), "there is no condition"),
        (rule_of("not " * 100 + "a", a={"x": 1}), "nested too deeply"),
        (rule_of(a={"x|re": "(?=a)"}), "at /detection/a/x|re: invalid perl operator: (?="),
        (rule_of(a={"x|re|contains": "a"}), "cannot be combined"),
        (rule_of(a={"x|cidr": "10.0.0.300/8"}), "expected a network"),
        (rule_of(a={"x|exists": "yes"}), "expected true or false"),
        (rule_of(a={"x|gt": "a"}), "expected a number"),
        (rule_of(a={"x|expand": "%admins%"}), "no values for the placeholder %admins%"),
        (rule_of(a={"x|windash": "-a -b -c -d"}), "more than 3 dashes"),
        (rule_of(a={"x|contains": None}), "contains needs a text"),
        (rule_of(a={"x|base64": "a*"}), "wildcards has no base64 form"),
        (rule_of(a={"x": []}), "the list is empty"),
        (rule_of(a={}), "the map is empty"),
        (rule_of(a={"x": 1, "x|neq": 1}), "nothing can match"),
        ({"correlation": {}}, "at /correlation: a correlation rule looks at several events and is no filter"),
        ({"title": "x"}, "there is no detection"),
    ],
)
def test_a_part_without_a_meaning_is_refused_by_name(rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(FilterDocumentError) as refused:
        sigma.parse(rule)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("detection: {a: &x {b: 1}, c: *x, condition: a}", "aliases are not supported"),
        ("detection: {a: {b: 1, b: 2}, condition: a}", "the name 'b' occurs twice"),
        ("detection: [", "YAML"),
        ("", "there is no rule"),
        ("a: 1\n---\nb: 2", "expected a single rule"),
        ("- a", "expected a map of names"),
    ],
)
def test_yaml_that_is_no_rule(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        sigma.parse(text)


def test_the_documents_of_a_file() -> None:
    rules = list(sigma.documents(b"title: a\n---\n---\ntitle: b\ndate: 2024-01-02\n"))
    assert rules == [{"title": "a"}, {"title": "b", "date": "2024-01-02"}]


SCHEMA = """
keywords = ["message", "data"]

[fields]
Image = "process.path"

[placeholders]
admins = ["ann", "ben"]

[[sources]]
product = "windows"
category = "process_creation"
filter = "EventID = 1"

[[sources]]
product = "linux"
"""


def test_a_schema_says_how_events_look() -> None:
    schema = LogSchema.read(SCHEMA)
    windows = {"product": "windows", "category": "process_creation"}
    rule = {"logsource": windows, **rule_of(a={"Image|endswith": "x.exe", "User|expand": "%admins%"})}
    wanted = sigma.parse(rule, schema)
    assert wanted.matches({"EventID": 1, "process": {"path": "C:\\X.EXE"}, "User": "Ben"})
    assert not wanted.matches({"EventID": 2, "process": {"path": "C:\\X.EXE"}, "User": "Ben"})
    keyword = sigma.parse({"logsource": {"product": "linux"}, **rule_of(a=["err", "fail"])}, schema)
    assert keyword.matches({"data": "it Failed"})
    assert not keyword.matches({"other": "err"})
    with pytest.raises(FilterDocumentError, match="no source for product macos"):
        sigma.parse({"logsource": {"product": "macos"}, **rule_of(a={"x": 1})}, schema)
    with pytest.raises(TomlError, match="schema"):
        LogSchema.read("[source]\n")


def test_many_exceptions_stay_conditions_of_their_own() -> None:
    exceptions = {
        f"f{n}": {"Image|endswith": f"\\{n}.exe", "CommandLine|contains": [f"x{n}", f"y{n}"]} for n in range(40)
    }
    wanted = sigma.parse(rule_of("a and not 1 of f*", a={"EventID": 1}, **exceptions))
    assert len(wanted.boxes) == 1
    assert not wanted.matches({"EventID": 1, "Image": "c:\\39.EXE", "CommandLine": "Y39"})
    assert wanted.matches({"EventID": 1, "Image": "c:\\39.EXE", "CommandLine": "Y38"})


def test_a_long_list_of_texts_is_found_by_its_pieces() -> None:
    wanted = sigma.parse(rule_of(a={"Hashes|contains": [f"SHA1={n:08}" for n in range(1000)]}))
    index = Index([("drivers", wanted), ("other", "Hashes CONTAINS 'zz'")])
    assert index.match({"Hashes": "md5=0,sha1=00000999"}) == ["drivers"]
    assert index.match({"Hashes": "sha1=00001000"}) == []
    assert index.match({"Hashes": ["a", "SHA1=00000000"]}) == ["drivers"]
