"""Statistics against plain counting: of parts, of wholes, of filters."""

from __future__ import annotations

import math
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from fieldfare import Event, Interval, parse
from fieldfare.events import json
from fieldfare.events.values import MISSING, Kind
from fieldfare.filters.constraint import FULL
from fieldfare.filters.distributions import Distributions
from fieldfare.filters.statistics import Sample
from fieldfare.pipeline.statistics.attributes import EventStatistics, attribute_statistics, known
from fieldfare.pipeline.statistics.sketches import SAMPLE, VALUES, Count, count
from fieldfare.pipeline.table.normalisation import normalise

START = datetime(2026, 1, 1, tzinfo=UTC)
CONDITIONS = [
    "x < 40", "x >= 40 AND x < 41.5", "x = 7", "x != 7", "NOT EXISTS x", "EXISTS x", "x IN (1, 2, 3) OR x > 90",
    "symbol = 'S0'", "symbol LIKE 'S1%'", "symbol LIKE '%7%'", "symbol > 'S5'", "NOT symbol = 'S0'", "rare = 'r77'",
    "hot = true", "NOT hot = true", "at < TIMESTAMP '2026-01-01T06:00:00Z'", "raw = X'01'", "venue.id <= 3",
    "ANY tags = 'a'", "x * 2 > 100", "width > 5", "y < 0.25", "y BETWEEN 0.5 AND 0.75", "undeclared = 1",
]  # fmt: skip


def made(size: int, seed: int) -> list[dict[str, Any]]:
    """x has 101 values, symbol 50 of which the first is frequent, rare as many as there are events, y is dense."""
    dice = random.Random(seed)
    return [
        {
            "x": None if dice.random() < 0.1 else dice.randrange(101),
            "y": math.nan if dice.random() < 0.05 else dice.random(),
            "symbol": f"S{min(49, int(dice.expovariate(0.2)))}",
            "rare": f"r{dice.randrange(3000)}",
            "hot": dice.random() < 0.3,
            "at": START + timedelta(minutes=dice.randrange(24 * 60)),
            "raw": bytes([dice.randrange(3)]),
            "venue": {"id": dice.randrange(10)},
            "tags": dice.choices("abc", k=dice.randrange(3)),
        }
        for _ in range(size)
    ]


KIND = pa.struct(
    {
        "x": pa.int64(), "y": pa.float64(), "symbol": pa.string(), "rare": pa.string(), "hot": pa.bool_(),
        "at": pa.timestamp("us", "UTC"), "raw": pa.binary(), "venue": pa.struct({"id": pa.int64()}),
        "tags": pa.list_(pa.string()),
    }
)  # fmt: skip


def batch(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    wanted = [[n % 3] * (n % 2) for n in range(len(rows))]
    columns = {"fields": pa.array(rows, KIND), "rest": pa.nulls(len(rows), pa.string())}
    return pa.record_batch({**columns, "wanted": pa.array(wanted, pa.list_(pa.int64()))})


def counted(rows: list[dict[str, Any]], parts: int) -> Count:
    """In parts, which are put together in a tree."""
    chance = np.random.default_rng(1)
    size = -(-len(rows) // parts)
    counts = [count(batch(rows[start : start + size]), chance, intervals=False) for start in range(0, len(rows), size)]
    while len(counts) > 1:
        pairs = zip(counts[::2], counts[1::2], strict=False)
        counts = [one | other for one, other in pairs] + (counts[-1:] if len(counts) % 2 else [])
    return counts[0]


@pytest.mark.parametrize("parts", [1, 9])
def test_counts_of_parts_are_counts_of_the_whole(parts: int) -> None:
    rows = made(20_000, 3)
    whole = counted(rows, parts)
    known_of = known(whole)
    assert whole.events == len(rows)
    for name in ("x", "symbol", "hot", "at", "raw"):
        exact = Counter(row[name] for row in rows if row[name] is not None)
        one = known_of.attributes[name]
        assert one.tally.present == sum(exact.values())
        assert (one.tally.low, one.tally.high) == (min(exact), max(exact))
        if len(exact) <= VALUES:
            assert one.tally.counts == exact
            assert one.distinct == len(exact)
            assert [number for _, number in one.top(3)] == [number for _, number in exact.most_common(3)]
    for name in ("rare", "y", "at"):
        exact = Counter(row[name] for row in rows if row[name] == row[name])
        one = known_of.attributes[name]
        assert one.distinct == pytest.approx(len(exact), rel=0.1)
        assert one.tally.lost > 0
        assert all(number <= exact[value] <= number + one.tally.lost for value, number in one.tally.counts.items())
    assert known_of.attributes["y"].tally.nan == sum(row["y"] != row["y"] for row in rows)
    assert known_of.attributes["y"].quantiles(4)[1:-1] == pytest.approx([0.25, 0.5, 0.75], abs=0.03)
    assert known_of.attributes["x"].quantiles(2)[1] in (49, 50, 51)
    assert known_of.attributes["tags"].kind is Kind.LIST
    assert sum(whole.passed.values()) == sum(
        (start % size) % 2 for size in [-(-len(rows) // parts)] for start in range(len(rows))
    )
    assert len(known_of.sample.events) == SAMPLE
    assert np.mean([fields["x"] for fields in known_of.sample.events if "x" in fields]) == pytest.approx(50, abs=2)


Seen = tuple[list[Any], EventStatistics]


@pytest.fixture(scope="module")
def seen() -> Seen:
    """The fields of events, and what was counted of them."""
    rows = made(20_000, 3)
    flat = [Event({name: value for name, value in row.items() if value is not None}).fields for row in rows]
    return flat, known(counted(rows, 4))


@pytest.mark.parametrize("text", CONDITIONS)
def test_shares_are_those_of_all_events(text: str, seen: Seen) -> None:
    flat, found = seen
    (branch,) = parse(text).branches
    ((dimension, wanted),) = branch.items()
    values = [dimension.evaluate(f) if not isinstance(dimension, str) else f.get(dimension, MISSING) for f in flat]
    share = sum(wanted.matches(value) for value in values) / len(values)
    exact = dimension in ("x", "symbol", "hot", "raw", "venue.id") or text == "undeclared = 1"
    assert found.share(dimension, wanted, FULL) == pytest.approx(share, abs=0.0002 if exact else 0.02)
    assert found.share(dimension, wanted, wanted) == 1.0


def test_a_merger_of_frequent_values_is_known_to_be_better_than_one_of_rare_ones(seen: Seen) -> None:
    """As `Sample` says with all events before it, and unlike what a look at the filters alone would say."""
    flat, counts = seen
    pairs = [
        ("x < 10 AND symbol = 'S0'", "x < 60 AND symbol = 'S9'"),
        ("x < 60 AND symbol = 'S0'", "x < 10 AND symbol = 'S9'"),
        ("y < 0.1 AND venue.id < 8", "y < 0.2 AND venue.id < 5"),
    ]
    precisions = []
    for one, other in pairs:
        a, b = parse(one), parse(other)
        sure = a.merge_imperfect(b, Sample(flat))
        found = a.merge_imperfect(b, counts)
        assert found.filter == sure.filter
        assert found.precision == pytest.approx(sure.precision, abs=0.02)
        precisions.append((found.precision, a.merge_imperfect(b).precision))
    assert precisions[1][0] > precisions[0][0] + 0.3
    assert abs(precisions[1][0] - precisions[1][1]) > 0.1


def test_one_pass_over_a_table_counts_values_and_filters(spark: SparkSession) -> None:
    dice = random.Random(5)
    events = [
        Event({"n": n, "x": dice.randrange(100), "width": Interval(n % 10, n % 10 + 2), "more": n % 4})
        for n in range(2000)
    ]
    raw = spark.createDataFrame([(json.encode(event).decode(),) for event in events], "event string")
    table = normalise(raw, "n long, x long, width struct<low: long, high: long, closed: string>").events
    filters = {"few": "x < 3", "none": "x > 1000", "rest": "more = 2", "wide": "width > 9"}
    subscriptions = spark.createDataFrame(list(filters.items()), "id string, filter string")
    found = attribute_statistics(table.repartition(5), subscriptions)
    assert found.events == 2000
    assert found.attributes["x"].tally.counts == Counter(event["x"] for event in events)
    assert found.attributes["width"].kind is Kind.INTERVAL
    assert found.selectivity == {
        id: sum(parse(text).matches(event) for event in events) / 2000 for id, text in filters.items()
    }
    for text in ("more = 2", "width > 9", "x < 3"):
        (branch,) = parse(text).branches
        ((dimension, wanted),) = branch.items()
        exact = sum(parse(text).matches(event) for event in events) / 2000
        assert found.share(dimension, wanted, FULL) == pytest.approx(exact, abs=0.001)
    rows = {row["attribute"]: row for row in found.rows()}
    assert rows["n"]["distinct"] == pytest.approx(2000, rel=0.1)
    assert (rows["x"]["low"], rows["x"]["high"], rows["x"]["presence"]) == (0, 99, 1.0)
    assert attribute_statistics(table.limit(0)).events == 0


def test_a_file_for_nodes_has_the_same_shares(tmp_path: Path) -> None:
    statistics = known(counted(made(400, 5), 3))
    statistics.save(tmp_path / "statistics.json")
    again = Distributions.read((tmp_path / "statistics.json").read_bytes())
    for text in CONDITIONS:
        for dimension, wanted in next(iter(parse(text).boxes)).items():
            assert again.share(dimension, wanted, FULL) == pytest.approx(statistics.share(dimension, wanted, FULL)), (
                text
            )
