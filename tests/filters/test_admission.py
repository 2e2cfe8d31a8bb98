"""What is let in: filters of every language that can be read back, and nothing that is too large."""

from __future__ import annotations

from typing import Any

import pytest

from fieldfare.filters import NOTHING, FilterDocumentError, FilterSyntaxError, FilterTooComplex, parse
from fieldfare.filters.admission import Limits, admit


@pytest.mark.parametrize(
    "written",
    ["x + y = TRUE", "-x = TRUE", "NOT x * 2 = TRUE", "type = 'quote' AND x % y = TRUE", "price < 5 OR a CONTAINS 'b'"],
)
def test_what_is_let_in_can_be_read_back(written: str) -> None:
    assert parse(str(admit(written))) == admit(written) == parse(written)


def test_documents_and_filters_are_let_in() -> None:
    assert admit([{"prefix": {"type": "com."}}]) == parse("type STARTS WITH 'com.'")
    assert admit({"exact": {"type": "com"}}) == parse("type = 'com'")
    assert admit(parse("x = 1") & parse("y = 2")) == parse("x = 1 AND y = 2")


@pytest.mark.parametrize("written", ["price <", 5, None, {"no": 1}, "x = 1 AND x = 2", NOTHING, "(" * 5000 + "x"])
def test_what_means_nothing_is_refused(written: Any) -> None:
    with pytest.raises((FilterSyntaxError, FilterDocumentError, FilterTooComplex)):
        admit(written)


@pytest.mark.parametrize(
    "written",
    ["x = '" + "a" * 10_000 + "'", [{"exact": {"type": "a." * 5_000}}], parse("x = '" + "a" * 10_000 + "'")],
    ids=["text", "document", "filter"],
)
def test_what_is_too_long_is_refused(written: object) -> None:
    with pytest.raises(FilterTooComplex, match="more than 10000 characters"):
        admit(written)
    assert not admit(written, Limits(text=20_000)).is_empty
