"""Merge plans: nothing is lost, exact mergers waste nothing, and what is measured is what one counts by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.jvm import Jvm

from fieldfare import Event, parse
from fieldfare.filters.statistics import Uniform
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.match.merge_plan import MergePlan, measured, merge_plan
from fieldfare.pipeline.statistics.attributes import EventStatistics, attribute_statistics

SIZE = 100
dice = random.Random(4)
POINTS = [{"x": dice.randrange(SIZE), "y": min(SIZE - 1, int(dice.expovariate(0.05)))} for _ in range(4000)]
"""x is evenly spread, y is small more often than not; both are independent"""


def boxes(count: int) -> list[Subscription]:
    found = []
    for number in range(count):
        low, bottom = dice.randrange(0, SIZE, 10), dice.randrange(0, SIZE, 10)
        width, height = (dice.choice([10, 20, 30]) for _ in range(2))
        text = f"x >= {low} AND x < {low + width} AND y >= {bottom} AND y < {bottom + height}"
        found.append(Subscription(f"s{number}", text))
    return found


SUBSCRIPTIONS = [*boxes(60), Subscription("same", "x < 5 AND y < 5"), Subscription("again", "y < 5 AND x < 5")]


@pytest.fixture
def table(spark: SparkSession) -> DataFrame:
    return made(spark)


def made(spark: SparkSession) -> DataFrame:
    rows = [(str(n), (point["x"], point["y"])) for n, point in enumerate(POINTS)]
    return spark.createDataFrame(rows, "id string, fields struct<x: long, y: long>").repartition(3).cache()


@pytest.fixture(scope="module")
def counted(jvm: Jvm) -> EventStatistics:
    return attribute_statistics(made(jvm.session()))


def brute(plan: MergePlan) -> list[tuple[int, int]]:
    """Events that each merger lets pass, and those of them that no member wants."""
    events = [Event(point) for point in POINTS]
    found = []
    for entry in plan.entries:
        passed = [event for event in events if entry.filter.matches(event)]
        members = [plan.filters[id] for id in entry.members]
        found.append((len(passed), sum(not any(one.matches(event) for one in members) for event in passed)))
    return found


def check(plan: MergePlan, subscriptions: Sequence[Subscription]) -> None:
    """Each subscription is in one entry, and all it wants passes there."""
    assert sorted(id for entry in plan.entries for id in entry.members) == sorted(one.id for one in subscriptions)
    for entry in plan.entries:
        assert all(entry.filter.covers(plan.filters[id]) for id in entry.members)
    assert (plan.before, plan.after) == (len(subscriptions), len(plan.entries))


def test_exact_mergers_waste_nothing(table: DataFrame, counted: EventStatistics) -> None:
    plan = merge_plan(SUBSCRIPTIONS, counted)
    check(plan, SUBSCRIPTIONS)
    assert plan.after < 0.75 * plan.before
    assert any(
        len(entry.members) > 1 and str(entry.filter) not in {one.filter for one in SUBSCRIPTIONS}
        for entry in plan.entries
    )
    rows = measured(plan, table).collect()
    assert [(row.passed, row.unwanted) for row in rows] == brute(plan)
    assert not any(row.predicted or row.measured for row in rows)


@pytest.mark.long
def test_a_merger_wastes_what_was_predicted(table: DataFrame, counted: EventStatistics) -> None:
    exact = merge_plan(SUBSCRIPTIONS, counted).after
    plan = merge_plan(SUBSCRIPTIONS, counted, 0.3)
    check(plan, SUBSCRIPTIONS)
    assert plan.after < 0.7 * exact
    rows: list[Any] = measured(plan, table).collect()
    assert [(row.passed, row.unwanted) for row in rows] == brute(plan)
    assert [row.merger for row in rows] == [str(entry.filter) for entry in plan.entries]
    wasteful = [row for row in rows if row.predicted > 0 and row.passed > 200]
    assert len(wasteful) >= 2
    for row in wasteful:
        assert row.measured == pytest.approx(row.unwanted / row.passed)
        assert row.predicted <= 0.3
        assert row.measured <= row.predicted + 0.05  # what is wasted twice is predicted twice
    assert max(row.measured for row in wasteful) > 0.02
    assert {(row.before, row.after) for row in rows} == {(plan.before, plan.after)}


def test_two_boxes_waste_just_what_they_leave_of_theirs(table: DataFrame, counted: EventStatistics) -> None:
    """Corners of a box: known shares of x, and of y as it is, not as if it were evenly spread."""
    corners = [
        Subscription(1, "x >= 0 AND x < 50 AND y >= 0 AND y < 10"),
        Subscription(2, "x >= 0 AND x < 100 AND y >= 10 AND y < 100"),
    ]
    plan = merge_plan(corners, counted, 0.5)
    (entry,) = plan.entries
    low = sum(point["y"] < 10 for point in POINTS) / len(POINTS)
    assert entry.predicted == pytest.approx(low / 2, abs=0.02)
    (row,) = measured(plan, table).collect()
    assert row.measured == pytest.approx(entry.predicted, abs=0.02)
    (blind,) = merge_plan(corners, Uniform(), 0.5).entries
    assert abs(blind.predicted - row.measured) > 0.05


def test_a_table_of_subscriptions_may_be_a_dataframe(spark: SparkSession, counted: EventStatistics) -> None:
    frame = spark.createDataFrame([(1, "x < 5"), (2, "x >= 5 AND x < 9"), (3, "x < 2")], "id int, filter string")
    (entry,) = merge_plan(frame, counted).entries
    assert (entry.filter, entry.members, entry.predicted) == (parse("x < 9"), (1, 2, 3), 0.0)
    with pytest.raises(ValueError, match="from 0 to 1, not 5"):
        merge_plan(frame, counted, 5)
