"""Rendering is the inverse of parsing: the text of every filter, however it was written, is read as the same filter.

The filters come from random syntax trees of all languages (`languages/writing`). To try many more of them:
`HYPOTHESIS_PROFILE=long HYPOTHESIS_EXAMPLES=1000000 pytest tests/filters/test_reading_back.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.filters.languages import writing

from fieldfare.filters import Filter, FilterDocumentError, FilterSyntaxError, FilterTooComplex, parse
from fieldfare.filters.admission import admit
from fieldfare.filters.advertisement import Advertisement
from fieldfare.filters.languages.cesql import translation
from fieldfare.filters.languages.ruler import patterns
from fieldfare.filters.languages.subscriptions import documents

REFUSED = (FilterSyntaxError, FilterDocumentError, FilterTooComplex)
LANGUAGES: dict[str, Callable[[Random], Filter]] = {
    "native": lambda chance: parse(writing.native(chance, chance.randrange(1, 4))),
    "cesql": lambda chance: translation.parse(writing.cesql(chance, chance.randrange(1, 4))),
    "subscriptions": lambda chance: documents.parse(writing.subscription(chance, chance.randrange(1, 4))),
    "ruler": lambda chance: patterns.parse(writing.ruler(chance, chance.randrange(1, 3))),
    "python": writing.python,
}
seeds = st.integers(0, 2**64 - 1).map(Random)
"""chance from a number: shrinking means little here, and a million trees are made the faster"""


def written(language: str, chance: Random) -> Filter | None:
    """A filter, or None if what chance wrote is none."""
    try:
        made = LANGUAGES[language](chance)
    except REFUSED:
        return None
    except (TypeError, ValueError):  # what Python says of operands that do not go together
        if language != "python":
            raise
        return None
    return None if made.is_empty else made


@pytest.mark.parametrize("language", LANGUAGES)
@given(chance=seeds)
def test_every_filter_is_read_back(language: str, chance: Random) -> None:
    made = written(language, chance)
    if made is not None:
        again = parse(str(made))
        assert again == made
        assert hash(again) == hash(made)


@pytest.mark.parametrize("language", LANGUAGES)
@few(20)
@given(chance=seeds)
def test_what_is_made_of_filters_is_read_back(language: str, chance: Random) -> None:
    some, other = written(language, chance), written("native", chance)
    if some is not None and other is not None:
        for make in (Filter.__and__, Filter.__or__, Filter.__sub__, lambda a, _: ~a):
            try:
                made = make(some, other)
            except FilterTooComplex:
                continue
            if not made.is_empty:
                assert parse(str(made)) == made


@given(chance=seeds)
def test_what_is_let_in_is_what_was_written(chance: Random) -> None:
    for document in (writing.native(chance), writing.subscription(chance)):
        try:
            made = admit(document)
        except REFUSED:
            continue
        assert made == (parse(document) if isinstance(document, str) else documents.parse(document))


@given(chance=seeds)
def test_every_advertisement_is_read_back(chance: Random) -> None:
    made = written("native", chance)
    try:
        promise = Advertisement(made) if made is not None else None
    except ValueError:
        return
    if promise is not None:
        assert Advertisement(parse(str(promise))) == promise


@given(chance=seeds)
def test_a_pattern_is_refused_or_read_back(chance: Random) -> None:
    for language in ("ruler", "native"):
        made = written(language, chance)
        try:
            pattern = patterns.render(made) if made is not None else None
        except ValueError:
            continue
        if pattern is not None:
            assert patterns.parse(pattern) == made


@given(chance=seeds)
def test_a_document_without_sql_is_written_again(chance: Random) -> None:
    try:
        made = documents.parse(writing.subscription(chance, 3, sql=False))
    except (FilterDocumentError, FilterTooComplex):
        return
    assert documents.parse(documents.render(made)) == made


@given(chance=seeds)
def test_a_document_is_refused_or_says_the_same_of_strings(chance: Random) -> None:
    """What `render` promises of any filter: of attributes that are strings or missing, the document says the same."""
    made = written(chance.choice(["native", "subscriptions", "cesql"]), chance)
    try:
        again = documents.parse(documents.render(made)) if made is not None else None
    except ValueError:
        return
    if made is not None and again is not None:
        for _ in range(20):
            event = {name: chance.choice(writing.STRINGS) for name in ("x", "y", "type", "a") if chance.random() < 0.8}
            assert again.matches(event) == made.matches(event)


@pytest.mark.parametrize(
    "text",
    [
        *(f"x {operator} y {test}" for operator in "+-*/%" for test in ("= TRUE", "!= TRUE", "= FALSE", "IS NULL")),
        "-x = TRUE", "NOT -x = TRUE", "COMPARE(b, a) = 1", "COMPARE(x, 5) = 0", "COMPARE(5, x) < 1", "COMPARE(x, y) = TRUE",
        "y + (INFINITY - INFINITY) > 3", "x = -" + "9" * 1000, "y * ABS(INFINITY - INFINITY) = x", "x * -5 = y - (-INFINITY)",
        "x ILIKE '" + "aB" * 450 + "'", " + ".join("a" * 60) + " = 1", "a HAS (" * 8 + "x = 1" + ")" * 8,
        "CESQL('" + "NOT " * 60 + "x')", "x NOT LIKE '%" + "a_" * 600 + "%'",
    ],
)  # fmt: skip
def test_these_are_read_back(text: str) -> None:
    made = parse(text)
    assert parse(str(made)) == made


def test_a_cesql_condition_of_all_levels_is_read_back() -> None:
    made = translation.parse("x = " + "-(" * 62 + "y" + ")" * 62)
    assert parse(str(made)) == made
