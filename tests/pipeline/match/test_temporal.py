"""Profiles and queries with periods: in bulk and as streams, against a twin that compares all with all."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from fieldfare import Event, Interval, parse
from fieldfare.filters.constraint import Mode as Reading
from fieldfare.pipeline import SubscriptionError
from fieldfare.pipeline.match import temporal_stream
from fieldfare.pipeline.match.temporal import match_profiles
from fieldfare.pipeline.match.temporal_stream import follow_profiles

Pairs = Counter[tuple[str, str]]
START = datetime(2026, 1, 1, tzinfo=UTC)
VALID = "valid struct<low: timestamp, high: timestamp, closed: string>"
FOREVER = 10**9


def moment(hour: int | None) -> datetime | None:
    return None if hour is None else START + timedelta(hours=hour)


def meet(profile: Interval | None, query: Interval | None) -> bool:
    """Is there an instant in both? (They end at whole hours, so that quarters of an hour tell.)"""
    instants = [START + timedelta(minutes=15 * quarter) for quarter in range(-4, 4 * 40)]
    return any(all(period is None or inside(period, instant) for period in (profile, query)) for instant in instants)


def inside(period: Interval, instant: Any) -> bool:
    low: Any = period.low
    high: Any = period.high
    after = low is None or low < instant or (low == instant and period.closed[0] == "[")
    return after and (high is None or instant < high or (instant == high and period.closed[1] == "]"))


def some_period(dice: random.Random) -> tuple[int | None, int | None, str | None] | None:
    low = dice.randrange(20)
    high = low + 1 + dice.randrange(6)
    return dice.choice(
        [None, (low, None, "[)"), (None, high, None), *[(low, high, how) for how in ("[]", "[)", "(]", "()", None)] * 2]
    )


def interval(period: tuple[int | None, int | None, str | None] | None) -> Interval | None:
    return None if period is None else Interval(moment(period[0]), moment(period[1]), period[2] or "[]")


def row(period: tuple[int | None, int | None, str | None] | None) -> Any:
    return None if period is None else (moment(period[0]), moment(period[1]), period[2])


@pytest.mark.parametrize("mode", ["overlap", "cover"])
def test_profiles_meet_queries_where_and_when_both_hold(spark: SparkSession, mode: Any) -> None:
    dice = random.Random(11)
    profiles: list[Any] = []
    for n in range(40):
        low = dice.randrange(40)
        profiles.append(
            (f"p{n}", some_period(dice), (low, low + dice.randrange(9), "[]"), dice.choice(["a", "b", None]))
        )
    queries: list[Any] = []
    for n in range(40):
        low = dice.randrange(40)
        x = f"x BETWEEN {low} AND {low + dice.randrange(25)}"
        queries.append((f"q{n}", some_period(dice), dice.choice([x, f"{x} AND kind = 'a'", f"{x} OR kind = 'b'"])))
    expected: Pairs = Counter()
    for p, held, (low, high, how), kind in profiles:
        event = Event({"x": Interval(low, high, how), **({} if kind is None else {"kind": kind})})
        for q, asked, text in queries:
            matched = parse(text).matches(event, "overlaps" if mode == "overlap" else "covers")
            expected[p, q] += matched and meet(interval(held), interval(asked))
    found = match_profiles(
        spark.createDataFrame(
            [(p, row(held), *rest) for p, held, *rest in profiles],
            f"id string, {VALID}, x struct<low: int, high: int, closed: string>, kind string",
        ),
        spark.createDataFrame(
            [(q, row(asked), text, f"of {q}") for q, asked, text in queries],
            f"id string, {VALID}, filter string, owner string",
        ),
        mode=mode,
    )
    assert found.columns == ["id", "valid", "x", "kind", "subscription", "owner", "snapshot"]
    pairs = [(got.id, got.subscription, got.owner) for got in found.collect()]
    assert Counter((p, q) for p, q, _ in pairs) == +expected
    assert all(owner == f"of {q}" for _, q, owner in pairs)
    assert 30 < len(pairs) < 800


def test_the_example_of_the_thesis_and_what_is_wrong(spark: SparkSession) -> None:
    always = "named_struct('low', CAST(NULL AS TIMESTAMP), 'high', CAST(NULL AS TIMESTAMP)) valid"
    profiles = spark.sql(
        f"SELECT id, named_struct('low', a, 'high', b) x, {always} FROM VALUES "
        "('P1', 1, 5), ('P2', 5, 10), ('P3', 5, 25), ('P4', 17, 20), ('P5', 7, 9) AS t(id, a, b)"
    )
    queries = spark.sql(
        f"SELECT id, 'x BETWEEN ' || a || ' AND ' || b filter, {always} FROM VALUES "
        "('Q1', 0, 10), ('Q2', 12, 20), ('Q3', 2, 10), ('Q4', 15, 22), ('Q5', 12, 14) AS t(id, a, b)"
    )
    found = match_profiles(profiles, queries, mode="cover", columns=["x"])
    assert {(got.id, got.subscription) for got in found.collect()} == {
        *(("P1", "Q1"), ("P2", "Q1"), ("P5", "Q1"), ("P4", "Q2")),
        *(("P2", "Q3"), ("P5", "Q3"), ("P4", "Q4")),
    }
    with pytest.raises(ValueError, match=r"profiles need a column 'valid', .*: there are id, x"):
        match_profiles(profiles.drop("valid"), queries)
    with pytest.raises(ValueError, match=r"queries need a column 'valid', .*: it is string"):
        match_profiles(profiles, queries.withColumn("valid", queries["id"]))
    with pytest.raises(ValueError, match="mode must be 'overlap' or 'cover', not 'point'"):
        match_profiles(profiles, queries, mode="point")  # type: ignore[arg-type]
    wrong = spark.sql(f"SELECT 'Q6' id, 'x = ' filter, {always}")
    with pytest.raises(SubscriptionError, match=r"subscription 'Q6' \(row 6\): column 4: expected"):
        match_profiles(profiles, queries.union(wrong.select(*queries.columns)))


@dataclass
class Twin:
    """Everything that ever came, compared one by one: no index, no expiry."""

    mode: Reading
    reached: int = -1
    profiles: dict[str, tuple[int, int, Event]] = field(default_factory=dict)
    queries: dict[str, tuple[int, int, Any]] = field(default_factory=dict)

    def step(self, profiles: list[dict[str, Any]], queries: list[dict[str, Any]]) -> list[tuple[str, str]]:
        new = [
            {one["id"]: self.held(one) for one in sorted(side, key=lambda one: one["time"])}
            for side in (profiles, queries)
        ]
        self.profiles |= new[0]
        self.queries |= new[1]
        self.reached = max([self.reached, *(one["time"] for one in (*profiles, *queries))])
        return [
            (p, q)
            for p, (p_from, p_until, event) in self.profiles.items()
            for q, (q_from, q_until, asked) in self.queries.items()
            if (p in new[0] or q in new[1]) and max(p_from, q_from) < min(p_until, q_until)
            if asked.matches(event, self.mode)
        ]

    def held(self, one: dict[str, Any]) -> Any:
        what = parse(one["filter"]) if "filter" in one else Event({"x": Interval(one["x"]["low"], one["x"]["high"])})
        return max(one["from"], one["time"], self.reached), one["until"], what

    def alive(self, side: dict[str, tuple[int, int, Any]]) -> set[str]:
        return {id for id, (start, end, _) in side.items() if start < end and end > self.reached}


def written(one: dict[str, Any]) -> str:
    high = None if one["until"] == FOREVER else f"{moment(one['until'])}"
    valid = {"low": f"{moment(one['from'])}", "high": high, "closed": "[)"}
    shown = {name: value for name, value in one.items() if name not in ("from", "until")}
    return json.dumps({**shown, "time": f"{moment(one['time'])}", "valid": valid})


@pytest.mark.parametrize("steps", [2, pytest.param(6, marks=pytest.mark.long)])
def test_streams_of_both_tell_each_pair_once_whatever_crashes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    """The short run has one crash, between output and record; in the long one, parts are merged and rows numbered anew."""
    dice = random.Random(5)
    monkeypatch.setattr(temporal_stream, "_PARTS", 2)
    twin = Twin("covers")
    expected: Pairs = Counter()
    (tmp_path / "profiles").mkdir()
    (tmp_path / "queries").mkdir()
    record = temporal_stream._record

    def crash_before(*_: Any) -> None:
        raise RuntimeError("before the record")

    def crash_after(*given: Any) -> None:
        record(*given)
        raise RuntimeError("after the record")

    def follow() -> None:
        stream = spark.readStream
        profiles = stream.schema(f"id string, {VALID}, time timestamp, x struct<low: int, high: int>")
        came = profiles.json(str(tmp_path / "profiles"))
        queries = stream.schema(f"id string, {VALID}, time timestamp, filter string, owner string")
        follow_profiles(
            came,
            queries.json(str(tmp_path / "queries")),
            state=tmp_path / "state",
            out=tmp_path / "out",
            mode="cover",
            time="time",
        ).trigger(availableNow=True).start().awaitTermination()

    sizes = [(6, 0), (0, 8), (14, 12), (14, 14), (0, 12), (12, 12)] if steps == 6 else [(14, 12), (14, 16)]
    crashes = {2: crash_before, 3: crash_after} if steps == 6 else {1: crash_before}
    for step, counts in enumerate(sizes):
        came: dict[str, list[dict[str, Any]]] = {"profiles": [], "queries": []}
        for side, count in zip(came, counts, strict=True):
            for n, time in enumerate(dice.sample(range(3 * step - 4, 3 * step + 14), count)):
                start, low = time + dice.randrange(-3, 6), dice.randrange(20)
                one = {"id": f"{side[0]}{dice.choice([n, n // 2, 100 * step + n])}", "time": time, "from": start}
                one["until"] = FOREVER if dice.random() < 0.1 else start + dice.randrange(12)
                if side == "profiles":
                    one["x"] = {"low": low, "high": low + dice.randrange(6)}
                else:
                    one["filter"] = f"x BETWEEN {low} AND {low + dice.randrange(12)}"
                came[side].append(one)
            (tmp_path / side / f"{step}.json").write_text("\n".join(map(written, came[side])))
        expected.update(twin.step(came["profiles"], came["queries"]))
        if step in crashes:
            monkeypatch.setattr(temporal_stream, "_record", crashes[step])
            with pytest.raises(StreamingQueryException, match="the record"):
                follow()
            monkeypatch.setattr(temporal_stream, "_record", record)
        follow()
    got = spark.read.parquet(str(tmp_path / "out")).collect()
    assert Counter((one.id, one.subscription) for one in got) == expected
    assert len(expected) > (20 if steps == 6 else 10)
    if steps < 6:
        return
    rows = temporal_stream._rows_in(tmp_path / "state" / "index")
    assert rows < sum(queries for _, queries in sizes), "it is numbered anew when most of it is over"
    last = temporal_stream._recorded(tmp_path / "state")
    for side, there in (("profiles", twin.profiles), ("queries", twin.queries)):
        parts = [str(tmp_path / "state" / side / part) for part in last.parts[side]]  # type: ignore[index]
        kept = {one.id for one in spark.read.parquet(*parts).collect()}
        assert twin.alive(there) <= kept
        assert len(kept) < len(there), "what is over goes when parts are merged"
        assert len(parts) == len(list((tmp_path / "state" / side).iterdir())) <= 3
