"""History: replay, files, nodes and retroactive subscriptions against the filters themselves, event by event."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.jvm import Jvm
from tests.pipeline.nodes import logged, node_elsewhere

from fieldfare import Event, Interval, parse
from fieldfare.events import cloudevents, json
from fieldfare.filters import Filter
from fieldfare.pipeline.lake.history import (
    field_types,
    received,
    replay,
    replay_to_file,
    replay_to_node,
    retroactive,
    within,
)
from fieldfare.pipeline.lake.pushdown import necessary
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.table.normalisation import normalise
from fieldfare.pipeline.table.schema import TableError

START = datetime(2026, 1, 1, tzinfo=UTC)
FIELDS = """id string, n long, price double, symbol string, time timestamp, hot boolean, tags array<string>,
            venue struct<id: bigint, city: string>, width struct<low: double, high: double, closed: string>"""
FILTERS = [
    "price < 10", "price >= 10.5 AND symbol = 'A'", "n > 2.5 AND n <= 7", "n = 3 OR n = 4.5", "n != 3", "NOT n < 5",
    "symbol LIKE 'B%'", "symbol LIKE '%b%'", "symbol IN ('A', 'Bb', '')", "symbol > 'A' AND symbol <= 'Bb'",
    "hot = true", "NOT hot = true", "EXISTS price", "NOT EXISTS price", "NOT EXISTS venue.id OR venue.id = 2",
    "venue.city = 'Bonn'", "ANY tags = 'x'", "NOT ANY tags = 'x'", "width BETWEEN 3 AND 4", "width > 8",
    "time < TIMESTAMP '2026-01-01T00:01:00Z'",
    "time BETWEEN TIMESTAMP '2026-01-01T00:00:30Z' AND TIMESTAMP '2026-01-01T00:02:00Z'",
    "n > 9007199254740992", "n >= 9007199254740993.0", "n < -9223372036854775808.0", "n <= 1e300",
    "price * 2 > 20", "extra = 1", "venue.floor > 2 AND n > 1", "more.deep = 'x'", "EXISTS extra OR price < 3",
    "(price < 5 AND hot = true) OR (n > 8 AND symbol = 'A')", "price = 4", "PATH('//deep') AND n < 9", "venue.id = 2",
]  # fmt: skip


def made(count: int) -> list[Event]:
    dice = random.Random(2)
    events = []
    for number in range(count):
        fields: dict[str, object] = {"id": f"e{number}", "time": START + timedelta(seconds=dice.randrange(300))}
        options: dict[str, object] = {
            "n": dice.choice([*range(10), 2**53, 2**53 + 1, -(2**63), 2**63 - 1]),
            "price": dice.choice([float(dice.randrange(20)), 10.5, float("inf"), -0.0]),
            "symbol": dice.choice(["", "A", "B", "Bb", "b", "Ü\0", "\U0001f426"]),
            "hot": dice.random() < 0.5,
            "tags": tuple(dice.choices("xyz", k=dice.randrange(3))),
            "venue": dice.choice([{"id": dice.randrange(4)}, {"city": "Bonn"}, {"id": 2, "floor": dice.randrange(5)}]),
            "width": Interval(low := dice.randrange(9), low + 1 + dice.randrange(3), dice.choice(["[]", "()", "[)"])),
            "extra": dice.choice([1, "1", b"\0"]),
            "more": {"deep": dice.choice(["x", "y"])},
        }
        fields |= {name: value for name, value in options.items() if dice.random() < 0.7}
        if "venue" not in fields and dice.random() < 0.5:
            fields["venue.id"] = 2  # the same path, and no column has it
        valid = Interval(START, START + timedelta(days=1), "[)") if number % 7 == 0 else None
        events.append(Event(fields, valid=valid))
    return events


EVENTS = made(300)


@pytest.fixture(scope="module")
def written(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The events in Parquet, with fields that were declared and fields that were not."""
    raw = jvm.session().createDataFrame([(json.encode(event).decode(),) for event in EVENTS], "event string")
    path = str(tmp_path_factory.mktemp("history") / "events")
    normalise(raw, FIELDS).events.repartition(3).write.parquet(path)
    return path


@pytest.fixture
def table(spark: SparkSession, written: str) -> DataFrame:
    return spark.read.parquet(written)


def brute(filter: Filter | str, since: datetime | None = None, until: datetime | None = None) -> list[str]:
    wanted = parse(filter) if isinstance(filter, str) else filter
    found = [
        event
        for event in EVENTS
        if wanted.matches(event)
        and (since is None or _time(event) >= since)
        and (until is None or _time(event) < until)
    ]
    return [str(event["id"]) for event in sorted(found, key=lambda event: (_time(event), event["id"]))]


def _time(event: Event) -> datetime:
    assert event.time is not None
    return event.time


def test_what_spark_leaves_out_no_filter_matches(table: DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    """And it does leave out something, of whatever a column decides."""
    filters = [parse(text) for text in FILTERS]
    columns = [necessary(filter, field_types(table), rest="rest").alias(str(n)) for n, filter in enumerate(filters)]
    passed = {row["id"]: row for row in table.select("id", *columns).collect()}
    assert len(passed) == len(EVENTS)
    for n, filter in enumerate(filters):
        wanted = set(brute(filter))
        let_pass = {id for id, row in passed.items() if row[str(n)]}
        assert wanted <= let_pass, FILTERS[n]
        if len(wanted) < 0.6 * len(EVENTS) and n < FILTERS.index("ANY tags = 'x'") and "LIKE" not in FILTERS[n]:
            assert len(let_pass) <= len(wanted) + 0.3 * len(EVENTS), FILTERS[n]
    table.where(necessary(parse("symbol = 'A' AND n > 5"), field_types(table))).explain("formatted")
    pushed = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("PushedFilters"))
    assert "EqualTo(fields.symbol,A)" in pushed
    assert "GreaterThanOrEqual(fields.n,6)" in pushed


def test_all_filters_at_once_would_have_received_what_they_match(table: DataFrame, tmp_path: Path) -> None:
    subscriptions = [Subscription(f"s{n}", text, f"o{n % 3}") for n, text in enumerate([*FILTERS, "n = 77"])]
    catalogue.write_version(tmp_path, subscriptions)
    since, until = START + timedelta(seconds=60), START + timedelta(seconds=200)
    deliveries = received(table, tmp_path, since, until).select("id", "subscription", "owner").collect()
    expected = Counter((id, one.id) for one in subscriptions for id in brute(one.filter, since, until))
    assert Counter((row.id, row.subscription) for row in deliveries) == expected
    counted = {row.subscription: row for row in retroactive(table, tmp_path, since, until).collect()}
    assert {id: row.events for id, row in counted.items()} == {
        one.id: len(brute(one.filter, since, until)) for one in subscriptions
    }
    assert counted["s0"].owner == "o0"
    assert counted["s0"].first.replace(tzinfo=UTC) >= since
    assert counted[f"s{len(FILTERS)}"].last is None


@pytest.mark.parametrize("text", ["price >= 3 AND symbol LIKE 'B%'", "extra = 1 OR more.deep = 'x'", "width > 5"])
def test_a_replay_is_what_matches_in_order(table: DataFrame, text: str) -> None:
    since = START + timedelta(seconds=30)
    found = replay(table, text, since, START + timedelta(seconds=250))
    assert [row.id for row in found.collect()] == brute(text, since, START + timedelta(seconds=250))
    assert found.columns == table.columns


def test_a_file_of_lines_holds_the_events_as_they_were(spark: SparkSession, table: DataFrame, tmp_path: Path) -> None:
    until = START + timedelta(seconds=100)
    found = replay(table, "n >= 0", until=until)
    replay_to_file(found, tmp_path / "found.jsonl")
    lines = (tmp_path / "found.jsonl").read_text().splitlines()
    by_id = {event["id"]: event for event in EVENTS}
    assert [json.decode(line) for line in lines] == [by_id[id] for id in brute("n >= 0", until=until)]
    assert any(json.decode(line).valid for line in lines)
    with pytest.raises(FileExistsError, match="remove it"):
        replay_to_file(found, tmp_path / "found.jsonl")
    replay_to_file(found, tmp_path / "found")
    assert spark.read.parquet(str(tmp_path / "found")).count() == len(lines)
    sale = {"specversion": "1.0", "id": "a", "source": "/till", "type": "sale", "data": {"sum": 5}, "lane": "x"}
    raw = spark.createDataFrame([(json.encode(Event(sale)).decode(),)], "event string")
    clouds = normalise(raw, "specversion string, source string, data struct<sum: bigint>").events
    replay_to_file(clouds, tmp_path / "clouds.jsonl")
    assert cloudevents.decode((tmp_path / "clouds.jsonl").read_text()) == Event(sale)


@pytest.mark.long
def test_a_node_gets_the_events_in_their_order(table: DataFrame, tmp_path: Path) -> None:
    with node_elsewhere(tmp_path) as url:
        replay_to_node(replay(table, "symbol = 'A'"), url, session="again")
    assert [event["id"] for event in logged(tmp_path)] == brute("symbol = 'A'")


def test_what_is_no_event_table_is_refused(spark: SparkSession, table: DataFrame) -> None:
    with pytest.raises(TableError, match="no struct 'fields' among n"):
        replay(spark.createDataFrame([(1,)], "n int"), "n = 1")
    with pytest.raises(ValueError, match="no time zone"):
        within(table, datetime(2026, 1, 1), None)  # noqa: DTZ001
    assert replay(table, parse("n < 1") & parse("n > 2")).count() == 0
