"""The filter dialects of the CloudEvents Subscriptions API: what they mean, what is refused, and the way back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.events.event import Event
from fieldfare.events.values import MISSING
from fieldfare.filters import Filter
from fieldfare.filters import parse as native
from fieldfare.filters.errors import FilterDocumentError, FilterSyntaxError
from fieldfare.filters.languages.cesql import translation
from fieldfare.filters.languages.cesql.casts import text_of
from fieldfare.filters.languages.cesql.evaluation import attribute
from fieldfare.filters.languages.subscriptions.documents import MAX_DEPTH, parse, render

PUSH = {"type": "com.github.push", "source": "/hub", "subject": "https://github.com/cloudevents/spec", "hop": 5}

# --- strategies -------------------------------------------------------------------------------------------------------

texts = st.sampled_from(
    ["a", "b", "ab", "ba", "aab", "abb", "a.", ".a", "5", "05", "true", "2026", "a\0", "a\U0010ffff", "\U0010ffff"]
)
attributes = st.sampled_from(["x", "y"])
comparisons = st.builds(
    lambda dialect, content: {dialect: content},
    st.sampled_from(["exact", "prefix", "suffix"]),
    st.dictionaries(
        attributes, texts | st.text(alphabet="ab.5\0\U0010ffff", min_size=1, max_size=4), min_size=1, max_size=2
    ),
)


def combined(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"all": parts}),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"any": parts}),
        inner.map(lambda part: {"not": part}),
    )


documents = st.recursive(comparisons, combined, max_leaves=8)
strings = st.text(alphabet="ab.5\0\U0010ffff", max_size=4) | texts
values = st.one_of(
    strings,
    st.sampled_from([None, True, False, 5, 5.0, 5.5, 2026, b"a", b"\x69\xb6\x9b", (), {"a": "b"}]),
    st.just(datetime(2026, 1, 1, tzinfo=UTC)),
)
events = st.dictionaries(attributes, values, max_size=2).map(Event)


def holds(document: Mapping[str, Any], event: Event) -> bool:
    """The dialects, word for word."""
    [(dialect, content)] = document.items()
    match dialect:
        case "all":
            return all(holds(part, event) for part in content)
        case "any":
            return any(holds(part, event) for part in content)
        case "not":
            return not holds(content, event)
    seen = {name: text_of(event[name]) for name in content if attribute(event, name) is not MISSING}  # type: ignore[arg-type]
    test: Any = {"exact": str.__eq__, "prefix": str.startswith, "suffix": str.endswith}[dialect]
    return all(name in seen and test(seen[name], text) for name, text in content.items())


def parsed(document: object) -> Filter | None:
    """The filter, or None if nothing can match it."""
    try:
        return parse(document)
    except FilterDocumentError as error:
        refused = error.problem
    assert refused == "nothing can match"
    return None


# --- meaning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "matches"),
    [
        ([], True),
        ({"exact": {"type": "com.github.push", "subject": "https://github.com/cloudevents/spec"}}, True),
        ({"exact": {"type": "com.github.push", "subject": "https://github.com/cloudevents"}}, False),
        ({"exact": {"type": "com.github.Push"}}, False),
        ({"exact": {"hop": "5"}}, True),
        ({"exact": {"hop": "05"}}, False),
        ({"exact": {"missing": "x"}}, False),
        ({"prefix": {"type": "com.github.", "subject": "https://github.com/cloudevents"}}, True),
        ({"prefix": {"type": "com.github.", "subject": "http:"}}, False),
        ({"prefix": {"type": "COM"}}, False),
        ({"suffix": {"type": ".push", "subject": "/cloudevents/spec"}}, True),
        ({"suffix": {"type": ".created"}}, False),
        ({"suffix": {"missing": "x"}}, False),
        ({"all": [{"exact": {"type": "com.github.push"}}, {"exact": {"source": "/hub"}}]}, True),
        ({"all": [{"exact": {"type": "com.github.push"}}, {"exact": {"source": "/"}}]}, False),
        ({"any": [{"exact": {"type": "com.github.push"}}, {"exact": {"source": "/"}}]}, True),
        ({"any": [{"exact": {"type": "com.github.pull"}}, {"exact": {"source": "/"}}]}, False),
        ({"not": {"exact": {"type": "com.github.push"}}}, False),
        ({"not": {"exact": {"missing": "x"}}}, True),
        ({"not": {"suffix": {"type": "pull"}}}, True),
        ({"sql": "source LIKE '%ub' AND hop < 6"}, True),
        ({"sql": "missing = 'x'"}, False),
        ({"not": {"sql": "missing = 'x'"}}, True),  # an error is false
        ({"any": [{"sql": "1 = 2"}, {"prefix": {"type": "com."}}]}, True),
        ([{"prefix": {"type": "com."}}, {"not": {"exact": {"source": "/"}}}], True),
        ([{"prefix": {"type": "com."}}, {"not": {"exact": {"source": "/hub"}}}], False),
    ],
)
def test_dialects(document: object, matches: bool) -> None:
    assert parse(document).matches(PUSH) is matches


@given(documents, events)
def test_every_document_means_what_it_says(document: dict[str, Any], event: Event) -> None:
    result = parsed(document)
    assert (result is not None and result.matches(event)) == holds(document, event)


@pytest.mark.parametrize(
    ("document", "same"),
    [
        ({"exact": {"type": "com.sale"}}, "type = 'com.sale'"),
        ({"exact": {"hop": "5"}}, "hop IN (5, '5')"),
        ({"prefix": {"type": "com.", "source": "/a."}}, "type STARTS WITH 'com.' AND source STARTS WITH '/a.'"),
        ({"not": {"suffix": {"type": ".sale"}}}, "NOT type ENDS WITH '.sale'"),
        ({"prefix": {"type": "com", "subject": "a"}}, "type STARTS WITH 'com' AND subject STARTS WITH 'a' OR"
         " CESQL('STRING(type)') STARTS WITH 'com' AND CESQL('STRING(subject)') STARTS WITH 'a'"),
        ({"sql": "type = 'com.sale'"}, "type = 'com.sale'"),
    ],
)  # fmt: skip
def test_lowered(document: object, same: str) -> None:
    assert parse(document) == native(same)


def test_sql_is_what_cesql_says() -> None:
    text = "type LIKE 'a%' AND (hop < 3 OR NOT EXISTS hop)"
    assert parse({"sql": text}) == parse([{"sql": text}]) == translation.parse(text)


# --- errors -----------------------------------------------------------------------------------------------------------

DIALECTS = "exact, prefix, suffix, all, any, not, sql, fieldfare"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (5, f"at /: expected an object with one of {DIALECTS}, found 5"),
        ({}, f"at /: expected an object with one of {DIALECTS}, found an empty object"),
        (
            {"exact": {"a": "b"}, "prefix": {"a": "b"}},
            f"at /: expected an object with one of {DIALECTS}, found an object with 'exact', 'prefix'",
        ),
        ({"contains": {"a": "b"}}, f"at /: there is no dialect 'contains'; there are {DIALECTS}"),
        ([{"exact": {"a": "b"}}, {"no": 1}], f"at /1: there is no dialect 'no'; there are {DIALECTS}"),
        ([None], f"at /0: expected an object with one of {DIALECTS}, found null"),
        ({"exact": "a"}, "at /exact: expected an object of attributes and strings, found 'a'"),
        ({"exact": {}}, "at /exact: expected an object of attributes and strings, found an empty object"),
        ({"exact": {"a": ""}}, "at /exact/a: expected a string that is not empty, found an empty string"),
        (
            {"any": [{"exact": {"a": "b"}}, {"prefix": {"type": True}}]},
            "at /any/1/prefix/type: expected a string that is not empty, found true",
        ),
        ({"exact": {"": "b"}}, "at /exact: '' is no name of an attribute, of a-z and 0-9 and other than data"),
        ({"prefix": {"A": "b"}}, "at /prefix: 'A' is no name of an attribute, of a-z and 0-9 and other than data"),
        ({"exact": {"data": "b"}}, "at /exact: 'data' is no name of an attribute, of a-z and 0-9 and other than data"),
        ({"all": []}, "at /all: expected a list of filters, at least one, found an empty list"),
        ({"any": {"not": 1}}, "at /any: expected a list of filters, at least one, found an object with 'not'"),
        ({"not": [{"exact": {"a": "b"}}]}, f"at /not: expected an object with one of {DIALECTS}, found a list"),
        ({"sql": 1}, "at /sql: expected a CESQL expression as a string, found 1"),
        ({"sql": "a AND"}, "at /sql: line 1, column 6: expected a value, found the end\n  a AND\n       ^"),
        ({"all": [{"exact": {"a": "b"}}, {"exact": {"a": "c"}}]}, "at /: nothing can match"),
        ({"sql": "1 = 2"}, "at /: nothing can match"),
    ],
)  # fmt: skip
def test_errors(document: object, message: str) -> None:
    with pytest.raises(FilterDocumentError) as caught:
        parse(document)
    assert str(caught.value) == message


def test_an_error_in_sql_tells_its_cause() -> None:
    with pytest.raises(FilterDocumentError) as caught:
        parse({"any": [{"sql": "NO_SUCH(a)"}]})
    assert caught.value.path == "/any/0/sql"
    assert isinstance(caught.value.__cause__, FilterSyntaxError)


@pytest.mark.parametrize("shell", [lambda inner: {"not": inner}, lambda inner: {"all": [inner]}], ids=["not", "all"])
def test_too_deep_is_an_error(shell: Any) -> None:
    document: object = {"exact": {"a": "b"}}
    for _ in range(MAX_DEPTH):
        document = shell(document)
    assert parse(document).fields() == {"a"}
    for _ in range(5000):
        document = shell(document)
    with pytest.raises(FilterDocumentError, match="nested more than"):
        parse(document)


# --- the way back -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("TRUE", []),
        ("type = 'a'", {"exact": {"type": "a"}}),
        ("type = 'a' AND source = 'b'", {"exact": {"source": "b", "type": "a"}}),
        ("NOT type = 'a'", {"not": {"exact": {"type": "a"}}}),
        ("type IN ('a', 'b')", {"any": [{"exact": {"type": "a"}}, {"exact": {"type": "b"}}]}),
        ("type STARTS WITH 'a'", {"prefix": {"type": "a"}}),
        ("type ENDS WITH 'a'", {"suffix": {"type": "a"}}),
        ("NOT type ENDS WITH 'a'", {"not": {"suffix": {"type": "a"}}}),
        (
            "type STARTS WITH 'a' AND type != 'ab'",
            {"all": [{"prefix": {"type": "a"}}, {"not": {"exact": {"type": "ab"}}}]},
        ),
        (
            "type STARTS WITH 'a' AND NOT type STARTS WITH 'ab'",
            {"all": [{"prefix": {"type": "a"}}, {"not": {"prefix": {"type": "ab"}}}]},
        ),
        (
            "type STARTS WITH 'a' AND type NOT IN ('a', 'ab', 'az')",
            {
                "all": [
                    {"prefix": {"type": "a"}},
                    {"not": {"any": [{"exact": {"type": "a"}}, {"exact": {"type": "ab"}}, {"exact": {"type": "az"}}]}},
                ]
            },
        ),
        (
            "type ENDS WITH '.a' AND type != 'b.a'",
            {"all": [{"suffix": {"type": ".a"}}, {"not": {"exact": {"type": "b.a"}}}]},
        ),
        (
            "type >= 'a' AND type < 'd'",
            {"any": [{"prefix": {"type": "a"}}, {"prefix": {"type": "b"}}, {"prefix": {"type": "c"}}]},
        ),
        (
            "type = 'a' OR source STARTS WITH 'b'",
            {"any": [{"prefix": {"source": "b"}}, {"exact": {"type": "a"}}]},
        ),
    ],
)
def test_render(text: str, document: object) -> None:
    assert render(native(text)) == document


@pytest.mark.parametrize(
    "document",
    [
        {"exact": {"hop": "5"}},
        {"prefix": {"type": "com", "subject": "2026"}},
        {"not": {"suffix": {"type": "sale"}}},
        {"all": [{"prefix": {"type": "a"}}, {"suffix": {"type": "b"}}, {"not": {"exact": {"type": "a.b"}}}]},
        {"not": {"all": [{"exact": {"type": "a"}}, {"suffix": {"source": "b"}}]}},
        # Its largest boxes exclude the number 5 alone, of which its text decides.
        {"any": [{"exact": {"x": "a"}}, {"prefix": {"x": "5", "y": "a"}}, {"not": {"exact": {"x": "5"}}}]},
        # Other documents with the same meaning have the same filter.
        {"all": [{"prefix": {"x": "5"}}, {"exact": {"x": "5"}}]},
        {"any": [{"exact": {"type": f"{number}"}} for number in range(300)]},
        {"all": [{"prefix": {"x": "\U0010ffff"}}, {"not": {"exact": {"x": "\U0010ffff"}}}]},
        {"all": [{"prefix": {"x": "a"}}, {"not": {"any": [{"exact": {"x": "a"}}, {"prefix": {"x": "a\0"}}]}}]},
        # Its boxes are so tangled that it hung on their order whether all of the largest were found.
        {"any": [
            {"all": [
                {"suffix": {"x": "true"}},
                {"any": [{"prefix": {"y": "55."}}, {"exact": {"y": "\0"}}, {"suffix": {"y": ".b"}}]},
            ]},
            {"prefix": {"x": "aab"}},
            {"not": {"any": [
                {"prefix": {"y": "aa", "x": "5.a"}}, {"prefix": {"y": "\0\0.b", "x": "b"}}, {"exact": {"x": "a\U0010ffff"}},
            ]}},
        ]},
    ],
)  # fmt: skip
def test_there_and_back(document: object) -> None:
    assert parse(render(parse(document))) == parse(document)


@given(documents)
def test_every_document_can_be_written_again(document: dict[str, Any]) -> None:
    result = parsed(document)
    if result is not None:
        assert parse(render(result)) == result


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("price > 5 AND type = 'a'", "price > 5"),
        ("hop = 5", "hop = 5"),
        ("type != 'a'", "type != 'a'"),  # it wants the attribute to be there
        ("EXISTS type", "EXISTS type"),
        ("type IS MISSING", "type IS MISSING"),
        ("type = 'a' OR type IS MISSING", "type IS MISSING OR type = 'a'"),
        ("type IS NULL OR type = 'a'", "type IS NULL OR type = 'a'"),
        ("type = 'a' OR type > 5", "type = 'a' OR type > 5"),
        ("type < 'm'", "type < 'm'"),
        ("type = ''", "type = ''"),
        ("type CONTAINS 'a'", "type CONTAINS 'a'"),
        ("type ILIKE '%a'", "type ILIKE '%a'"),
        ("ANY type = 'a'", "ANY type = 'a'"),
        ("data.user = 'a'", "data.user = 'a'"),
        ("CESQL('hop < 3')", "CESQL('hop < 3')"),
        ("bid > $ask", "ask < $bid"),
    ],
)
def test_what_the_dialects_cannot_say(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="cannot be expressed in the CloudEvents dialects: ") as caught:
        render(native(text))
    assert str(caught.value).endswith(f": {said}")


def test_our_own_dialect_is_the_native_language_over_all_fields() -> None:
    assert parse([{"fieldfare": "price < 119.5 AND data.sum > 2"}]) == native("price < 119.5 AND data.sum > 2")
    negated = parse({"not": {"any": [{"fieldfare": "price < 1.5"}, {"exact": {"type": "a"}}]}})
    assert negated.matches({"price": 2, "type": "b"})
    assert not negated.matches({"price": 1.25, "type": "b"})
    with pytest.raises(FilterDocumentError, match="at /0/fieldfare: line 1, column 8"):
        parse([{"fieldfare": "price <"}])
    with pytest.raises(FilterDocumentError, match="at /fieldfare: expected a filter as a string, found 5"):
        parse({"fieldfare": 5})
