"""A field is a field wherever it stands: in columns, in the rest, or in the rest under a name with a dot."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.match.test_fields import brute, matched

from fieldfare.events import json
from fieldfare.pipeline.match.fields import as_batch
from fieldfare.pipeline.table.json_columns import Decoder
from fieldfare.pipeline.table.undeclared_fields import undecided

NESTED = pa.struct({"a": pa.struct({"b": pa.int64(), "c": pa.struct({"d": pa.int64()})}), "n": pa.int64()})
DOTTED = pa.struct({"a.b": pa.int64(), "a.c.d": pa.int64(), "n": pa.int64()})


@pytest.mark.parametrize("kind", [NESTED, DOTTED])
def test_a_name_with_a_dot_is_a_path_in_columns_and_rest(kind: pa.StructType, tmp_path: Path) -> None:
    texts = ['{"a.b":1}', '{"a":{"b":1}}', '{"a":{"c.d":1}}', '{"a.c":{"d":1},"n":2}', '{"a":{"c":{"d":1}},"x":"."}']
    filters = ["a.b = 1", "a.c.d = 1", "n = 2", "NOT EXISTS a.b"]
    read = Decoder(kind)(pa.array(texts))
    expected = brute(filters, [json.decode(text) for text in texts])
    assert matched(tmp_path, filters, read.field("fields"), read.field("rest")) == expected


BATCH = as_batch(pa.array([{"a": {"b": 1}, "n": 1}], NESTED), None)
names = st.text(st.sampled_from('ab."\\:,{ '), min_size=1, max_size=4)
values = st.sampled_from([1.5, "x", ".", '.":', '"a.b":', None, {"k": 1.5}])


@given(st.dictionaries(names, values, min_size=1, max_size=3))
def test_a_rest_with_a_dot_in_a_name_is_put_together(tree: dict[str, object]) -> None:
    text = pa.array([json.write(tree).decode()])
    if any("." in name for name in tree):
        assert undecided(BATCH, text, ["a.b", "n"]) == [0]
    assert undecided(BATCH, text, ["n"]) == []
    assert undecided(BATCH, text, ["n", "other"]) == [0]


def test_a_dot_elsewhere_does_not_matter() -> None:
    rest = pa.array(['{"x":1.5,"y":"a.b","z":["."],"o":{"k":"v: 1.5"}}', None, '{"o":{"p.q" : 1}}'])
    assert undecided(BATCH, rest, ["a.b"]) == [2]
