"""Real processes: a cluster on this machine that loses an executor, a driver that is killed. See `kills` for more."""

from __future__ import annotations

import json
import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from tools.pipeline import drivers, kills, pattern_kills

from fieldfare import Event, parse
from fieldfare.pipeline import Subscription
from fieldfare.pipeline.match import catalogue

pytestmark = pytest.mark.long


def test_a_cluster_gets_its_subscriptions_and_survives_the_loss_of_an_executor(tmp_path: Path) -> None:
    dice = random.Random(2)
    events = [{"n": n, "x": dice.randrange(40)} for n in range(600)]
    filters = {f"s{n}": dice.choice([f"x > {n}", f"x = {n}", f"x BETWEEN {n} AND {n + 3}"]) for n in range(40)}
    wanted = {id: parse(text) for id, text in filters.items()}
    expected = Counter((event["n"], id) for event in events for id, one in wanted.items() if one.matches(Event(event)))
    (tmp_path / "events.json").write_text("\n".join(map(json.dumps, events)))
    rows = ({"id": id, "filter": text} for id, text in filters.items())
    (tmp_path / "subscriptions.json").write_text("\n".join(map(json.dumps, rows)))
    catalogue.write_version(tmp_path / "catalogue", [Subscription(id, text) for id, text in filters.items()])
    (tmp_path / "in").mkdir()
    files = [events[first : first + 30] for first in range(0, len(events), 30)]
    for n, some in enumerate(files):
        drivers.put(tmp_path, f"{n}.json", some)

    driver = drivers.start(tmp_path, drivers.CLUSTER, "batch", "stream")
    try:
        drivers.wait(driver, tmp_path, lambda: drivers.committed(tmp_path) >= 2)
        before = drivers.executors(driver)
        os.kill(before[0], signal.SIGKILL)
        assert len(before) == 2
        assert drivers.committed(tmp_path) < len(files) / 2, "it was lost in mid-stream"
        drivers.wait(driver, tmp_path, lambda: len(set(drivers.executors(driver)) - {before[0]}) == 2)
        (tmp_path / "stop").touch()
        drivers.wait(driver, tmp_path, (tmp_path / "deliveries.json").exists)
    finally:
        drivers.kill(driver)

    shipped = json.loads((tmp_path / "batch.json").read_text())
    assert shipped["gone"] == 1, "the driver's copy was there, and taken away"
    assert Counter(map(tuple, shipped["found"])) == expected
    streamed = json.loads((tmp_path / "deliveries.json").read_text())
    assert Counter((n, id) for n, id, _ in streamed) == expected
    assert len(set(drivers.batches(tmp_path).values())) == len(files) / 2


def test_a_driver_that_is_killed_delivers_exactly_once(tmp_path: Path) -> None:
    counts = kills.run(2, tmp_path, seed=4)
    assert counts["deliveries"] > counts["events"] > 0
    assert counts["versions"] > 1


def test_a_driver_that_is_killed_detects_exactly_once(tmp_path: Path) -> None:
    counts = pattern_kills.run(3, tmp_path, seed=4)
    assert counts["detections"] > counts["kills"]
