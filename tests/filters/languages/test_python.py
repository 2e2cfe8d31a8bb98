from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from fieldfare.filters import Filter, functions, parse
from fieldfare.filters.languages.python import call, field


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (field.price < 120, "price < 120"),
        (field.price <= 120.5, "price <= 120.5"),
        (field.price > -1, "price > -1"),
        (field.price >= 0, "price >= 0"),
        (120 > field.price, "price < 120"),  # noqa: SIM300
        (field.data.user.id == 7, "data.user.id = 7"),
        (field["data.user"]["id"] != 7, "data.user.id != 7"),
        (field["unit price"] > 1, '"unit price" > 1'),
        (field.symbol == "it's", "symbol = 'it''s'"),
        (field.active == True, "active"),  # noqa: E712  # how Python says it of a field
        (field.active.is_true(), "active"),
        (field.x == None, "x = NULL"),  # noqa: E711
        (field.x.is_null(), "x IS NULL"),
        (field.x.exists(), "EXISTS x"),
        (field.x.missing(), "x IS MISSING"),
        (field.at > datetime(2026, 1, 1, tzinfo=UTC), "at > TIMESTAMP '2026-01-01T00:00:00Z'"),
        (field.raw == b"\x01", "raw = X'01'"),
        (field.venue.isin(["X", "Y", 3]), "venue IN ('X', 'Y', 3)"),
        (field.venue.isin(v for v in "XY"), "venue IN ('X', 'Y')"),
        (field.x.isin([1, field.y]), "x IN (1, $y)"),
        (field.x.between(1, 5), "x BETWEEN 1 AND 5"),
        (field.x.between(field.low, 5), "x BETWEEN $low AND 5"),
        (field.name.startswith("A"), "name STARTS WITH 'A'"),
        (field.name.endswith("z"), "name ENDS WITH 'z'"),
        (field.name.contains("%"), "name CONTAINS '%'"),
        (field.name.like("A_%"), "name LIKE 'A_%'"),
        (field.name.ilike("ab%"), "name ILIKE 'ab%'"),
        (field.tags.any() == "a", "ANY tags = 'a'"),
        (field.tags.any().isin(["a", "b"]), "ANY tags IN ('a', 'b')"),
        (field.tags.any().startswith("a"), "ANY tags STARTS WITH 'a'"),
        (field.scores.all() >= 50, "ALL scores >= 50"),
        (field.scores.all().between(1, 9), "ALL scores BETWEEN 1 AND 9"),
        (field.tags.all().is_null(), "ALL tags IS NULL"),
        (field.items.has((field.sku == "a") & (field.qty > 2)), "items HAS (sku = 'a' AND qty > 2)"),
        (field.a.b.has(field.c.has(field.d == 1)), "a.b HAS (c HAS (d = 1))"),
        (field.price * field.quantity > 1000, "price * quantity > 1000"),
        (2 * field.x < 10, "2 * x < 10"),
        (field.x + 1 == 2, "x + 1 = 2"),
        (1 + field.x == 2, "1 + x = 2"),
        (field.x - 1 == 2, "x - 1 = 2"),
        (1 - field.x == 2, "1 - x = 2"),
        (field.x / 2 == 2, "x / 2 = 2"),
        (2 / field.x == 2, "2 / x = 2"),
        (field.x % 2 == 0, "x % 2 = 0"),
        (7 % field.x == 0, "7 % x = 0"),
        (-field.x > 3, "-x > 3"),
        ((field.x + field.y) * 2 > 3, "(x + y) * 2 > 3"),
        (field.bid > field.ask, "bid > $ask"),
        (field.bid == field.ask, "bid = $ask"),
        (field.bid * 2 <= field.ask + 1, "bid * 2 <= ask + 1"),
        (call("LENGTH", field.name) > 5, "LENGTH(name) > 5"),
        (call("length", call("LOWER", field.name)) > 5, "LENGTH(LOWER(name)) > 5"),
        (call("CIDR", field.ip, "10.0.0.0/8").is_true(), "CIDR(ip, '10.0.0.0/8')"),
        (call("LENGTH", field.name) == field.size, "LENGTH(name) = $size"),
        ((field.a == 1) & (field.b == 2) | ~(field.c == 3), "a = 1 AND b = 2 OR NOT c = 3"),
    ],
)
def test_the_same_filter_as_the_text(built: Filter, text: str) -> None:
    assert isinstance(built, Filter)
    assert built == parse(text)
    assert hash(built) == hash(parse(text))
    assert str(built) == str(parse(text))


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: field.price < None, "NULL has no order"),  # type: ignore[operator]
        (lambda: field.price < True, "TRUE has no order"),
        (lambda: field.price.between(None, 5), "NULL has no order"),  # type: ignore[arg-type]
        (lambda: field.x.between(1, "a"), "of one kind"),
        (lambda: field.x == [1], "not a value that a field can be compared with"),
        (lambda: field.x == {"a": 1}, "not a value that a field can be compared with"),
        (lambda: field.x == (field.y == 1), "not a value that a field can be compared with"),
        (lambda: field.x.isin("abc"), r"did you mean \['abc'\]"),
        (lambda: field.x.like(5), "LIKE needs a string such as 'abc', not 5"),  # type: ignore[arg-type]
        (lambda: field.x.startswith(field.y), "STARTS WITH needs a string"),  # type: ignore[arg-type]
        (lambda: 1 < field.x < 5, r"\(1 < x\) & \(x < 5\)"),
        (lambda: field.x == 1 and field.y == 2, "combine filters with &"),
        (lambda: not field.x == 1, "combine filters with &"),  # noqa: SIM201
        (lambda: field.x and field.y, "x is neither true nor false here"),
        (lambda: "a" in field.tags, r"\.any\(\) == 'a'"),
        (lambda: list(field.tags), "not iterable"),  # type: ignore[call-overload]
        (lambda: field[0], "named by a string"),  # type: ignore[index]
        (lambda: field.tags[0], r"any\(\) and all\(\)"),  # type: ignore[index]
        (lambda: field.tags.any() + 1, "ANY tags can only be compared with constants"),
        (lambda: field.x == field.tags.any(), "ANY tags can only be compared with constants"),
        (lambda: field.tags.any() == field.x, "ANY needs a condition on the elements of a single field"),
        (lambda: field.items.has("x"), "has needs a filter"),  # type: ignore[arg-type]
        (lambda: call("LENGTH"), "LENGTH does not take 0 arguments"),
        (lambda: {field.x: 1}, "unhashable"),
    ],
)  # fmt: skip
def test_helpful_type_errors(build: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError, match=said):
        build()


def test_value_errors() -> None:
    with pytest.raises(ValueError, match="there is no function FOO; there are ABS"):
        call("FOO", field.x)
    with pytest.raises(ValueError, match="has no time zone"):
        field.at < datetime(2026, 1, 1)  # noqa: B015, DTZ001


def test_fields_are_no_machinery() -> None:
    for named in (field, field.a.b):
        assert repr(copy.deepcopy(named)) == repr(pickle.loads(pickle.dumps(named))) == repr(named)
        assert not hasattr(named, "_repr_html_")
        assert not hasattr(named, "__array__")
    assert (field["_x"] == 1).matches({"_x": 1})


def test_repr() -> None:
    assert repr(field) == "field"
    assert repr(field.a["b c"]) == '"a.b c"'
    assert repr(field.a.any()) == "ANY a"
    assert repr(field.a * 2) == "a * 2"


def test_patterns_too_complex_to_analyse_keep_their_case() -> None:
    text = "%" + "%".join("a_" * 9) + "%b__________________"
    sensitive, insensitive = field.x.like(text), field.x.ilike(text)
    value = "a-" * 9 + "b" + "." * 18
    assert sensitive.matches({"x": value})
    assert not sensitive.matches({"x": value.upper()})
    assert insensitive.matches({"x": value.upper()})
    assert functions.find("IMATCHES") is functions.IMATCHES
