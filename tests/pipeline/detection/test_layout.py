"""Mistakes of patterns are named before a job runs, and shapes only drop what cannot match."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from fieldfare.patterns import parse_pattern
from fieldfare.patterns.runs import NEVER
from fieldfare.pipeline.detection.layout import DetectError, layout
from fieldfare.pipeline.detection.operator import texts_of
from fieldfare.pipeline.detection.plan import DetectPlan
from fieldfare.pipeline.detection.shapes import shape
from fieldfare.pipeline.job.config import PipelineError, parse
from fieldfare.pipeline.job.plan import check_unchanged, checkpoint, patterns_checkpoint

COLUMNS = pa.struct(
    [
        ("card", pa.string()),
        ("amount", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("of", pa.struct([("name", pa.string())])),
        ("tags", pa.list_(pa.string())),
    ]
)


def laid(*texts: str) -> dict[str, str]:
    """The selected fields and their types."""
    plan = DetectPlan(texts_of({f"p{number}": text for number, text in enumerate(texts)}))
    return {name: str(kind) for name, kind in layout(plan.prepared(), COLUMNS, pa.struct([])).selected.items()}


def test_selected_fields_have_types() -> None:
    found = laid(
        "a: [amount > 1] a+ followed by a select count(a) as n, sum(a.amount) as total, avg(a.amount) as mean, a.of.name as "
        "who, first(a.price) as price, last(a.amount) * 2 as twice for each of.name",
        "a: [amount > 1] a select a.price as total",
    )
    assert found == {
        "n": "int64", "total": "double", "mean": "double", "who": "string", "price": "double", "twice": "double",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["a: [x = 1] a for each crad"], "pattern 'p0': the events have no single value crad; did you mean card?"),
        (["a: [x = 1] b: [x = 2] a then b where b.amont > a.amount"], "single value amont; did you mean amount?"),
        (["a: [x = 1] a for each price"], "price is a double, which is no key"),
        (["a: [x = 1] a for each tags"], "tags is a list<.*>, which is no key"),
        (["a: [x = 1] a for each of"], "no single value of"),
        (["a: [x = 1] a select a.card as key"], "selects a field 'key', which is a column of the result"),
        (["a: [x = 1] a select a.card as v", "a: [x = 1] a select a.amount as v"], "'p0' and 'p1' select v as string"),
        (["a: [x = 1"], "pattern 'p0': line 1"),
        ([], "there is no pattern"),
    ],
)
def test_a_mistake_names_the_pattern(texts: list[str], said: str) -> None:
    with pytest.raises(DetectError, match=said):
        laid(*texts)


@pytest.mark.parametrize(
    ("text", "clauses", "events", "lifetime", "timed"),
    [
        ("a then b", [{"a"}, {"b"}], 2, NEVER, False),
        ("(a followed by b or c) within 2s", [{"b", "c"}, {"a", "c"}], 1, 2_000_000, False),
        ("a followed by b within 2s followed by c within 3s", [{"a"}, {"b"}, {"c"}], 3, 5_000_000, False),
        ("a followed by not b within 2s", [{"a"}], 1, 2_000_000, True),
        ("a and (b+ followed by c?)", [{"a"}, {"b"}], 1, NEVER, False),
        ("(a followed by b) within 2s once", [{"a"}, {"b"}], 2, NEVER, False),
    ],
)
def test_shapes(text: str, clauses: list[set[str]], events: int, lifetime: int, timed: bool) -> None:
    found = shape(parse_pattern(text, {"a": "A = 1", "b": "B = 1", "c": "C = 1"}))
    assert sorted(map(sorted, found.clauses)) == sorted(map(sorted, clauses))
    assert found[1:] == (events, lifetime, timed)


def test_a_pipeline_refuses_the_state_of_other_patterns(tmp_path: Path) -> None:
    before, after = (
        msgspec.structs.replace(parse(text), state=str(tmp_path))
        for text in (CARDS, CARDS.replace("1 hour", "2 hours"))
    )
    check_unchanged(before)
    check_unchanged(after)  # only checked so far
    begun = Path(patterns_checkpoint(checkpoint(after)))
    begun.mkdir(exist_ok=True)
    (begun / "metadata").write_text("{}")
    check_unchanged(after)
    with pytest.raises(PipelineError, match="they differ from those of the first run"):
        check_unchanged(before)


CARDS = """
name = "cards"
state = "state"
source = {kind = "files", path = "in"}
sink = [{kind = "lake", of = "composites", path = "found"}]
[patterns.fraud]
text = "a: [x = 1] b: [x = 2] (a followed by b) within 1 hour"
"""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("[x = 2]", "[x = ]"), r"line 7: patterns.fraud.text: .*"),
        ((" within 1 hour", ""), "patterns.fraud.text: the state may grow without bound"),
        (("composites", "events"), "nobody gets the composite events"),
        (("sink =", 'normalise = {duplicates = "1 hour"}\nsink ='), "normalise.duplicates: with patterns"),
        (("[patterns.fraud]\ntext", "[report]\nnode"), "there are no composites without"),
        (("text =", "txt ="), "did you mean 'text'"),
    ],
)
def test_a_mistake_in_a_file_is_named(change: tuple[str, str], said: str) -> None:
    assert parse(CARDS).patterns["fraud"].text.startswith("a:")
    with pytest.raises(PipelineError, match=said):
        parse(CARDS.replace(*change))
