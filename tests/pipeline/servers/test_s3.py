"""Pipelines and writers at once at versitygw, a server of S3 that keeps the promise of conditional puts among processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from tests.pipeline.conftest import BUCKET, environment
from tests.pipeline.lake.test_delta import SCHEMA, ids, written
from tools.servers import cache
from tools.waiting import wait_until

from fieldfare.objects import Objects
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.delta import clean, commit, compact, find
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription

pytestmark = pytest.mark.needs("versitygw")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    program = cache.versitygw()
    assert program
    (tmp_path / "objects" / BUCKET).mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name, value in environment(f"http://127.0.0.1:{port}").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    who = ["--access", os.environ["AWS_ACCESS_KEY_ID"], "--secret", os.environ["AWS_SECRET_ACCESS_KEY"]]
    command = [program, "--port", f"127.0.0.1:{port}", *who, "posix", str(tmp_path / "objects")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_until(lambda: answers(port))
            yield f"s3://{BUCKET}"
        finally:
            server.kill()


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_of_several_writers_one_creates_an_object(place: str) -> None:
    objects = Objects(f"{place}/race")
    with ThreadPoolExecutor(8) as threads:
        for number in range(30):
            assert sum(threads.map(lambda n, k=number: objects.create(f"{k}", b"%d" % n), range(8))) == 1


def test_writers_at_once_lose_no_batch_and_write_none_twice(place: str) -> None:
    lake = f"{place}/lake"

    def all_of(writer: str) -> int:
        return sum(commit(lake, [written(lake, f"{writer}{n}")], SCHEMA, Batch(writer, n)) for n in range(6))

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(all_of, ["a", "a", "b", "b"])) == 12
    expected = sorted(f"{writer}{number}" for writer in "ab" for number in range(6))
    assert ids(lake) == expected
    assert compact(lake) == 11
    assert clean(lake, older=timedelta(0)) >= 12
    assert ids(lake) == expected


def test_all_tasks_of_a_micro_batch_pin_the_same_version(place: str) -> None:
    path = f"{place}/subscriptions"
    catalogue.write_version(path, [Subscription("base", "x = 0")])

    def change(thread: int) -> list[int]:
        return [catalogue.amend(path, [Subscription(f"{thread}.{n}", "x = 1")], keep=2) for n in range(5)]

    def pin() -> list[int]:
        return [catalogue.pinned(path, moment) for moment in range(20)]

    with ThreadPoolExecutor(6) as threads:
        pins = [threads.submit(pin) for _ in range(3)]
        made = sorted(version for some in threads.map(change, range(3)) for version in some)
        first, *rest = [one.result() for one in pins]
    assert made == [*range(2, 17)]
    assert rest == [first, first]
    assert set(first) <= set(catalogue.versions(path)), "a pinned version was removed"


JARS = os.pathsep.join(map(str, cache.hadoop_jars()))
"""looked for now, as the tests have a cache of their own"""
PIPELINE = """
name = "market"
state = "state"
checkpoint = "{place}/checkpoint"
source = {{kind = "files", path = "{place}/events-in", format = "jsonl"}}
normalise = {{fields = "x long"}}
match = {{subscriptions = "{place}/subscriptions"}}
sink = [
    {{kind = "lake", path = "{place}/deliveries"}},
    {{kind = "lake", of = "events", path = "{place}/events"}},
]
spark = {{master = "local[1]", "spark.driver.extraClassPath" = "{jars}"}}
"""


@pytest.mark.long
@pytest.mark.needs("jars of Hadoop's")
def test_a_pipeline_in_a_bucket_goes_on_at_another_machine(place: str, tmp_path: Path) -> None:
    """Files, subscriptions, checkpoint and lake are in the bucket; only reports are on the disk of a driver.

    The source is one of Spark's own: Spark waits ten seconds for a worker of a source in Python, which a busy machine
    takes longer to start. Archives in buckets are read in `sources/test_archive.py`.
    """
    catalogue.write_version(f"{place}/subscriptions", [Subscription("big", "x > 25")])
    for machine, last in (("oslo", 30), ("rome", 60), ("bern", 60)):
        lines = "".join(f'{{"x": {n}}}\n' for n in range(last - 29, last + 1))
        Objects(f"{place}/events-in").put(f"{last}.jsonl", lines.encode())
        (tmp_path / machine).mkdir()
        file = tmp_path / machine / "market.toml"
        file.write_text(PIPELINE.format(place=place, jars=JARS))
        command = [sys.executable, "-m", "fieldfare", "pipeline", "run", str(file), "--once"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stderr}\n{(file.parent / 'state' / 'spark.log').read_text()[-3000:]}"
        assert numbers(f"{place}/events") == [*range(1, last + 1)]
        assert numbers(f"{place}/deliveries") == [*range(26, last + 1)]
        assert not (file.parent / "state" / "checkpoint").exists()


def numbers(lake: str) -> list[int]:
    table = find(lake)
    assert table is not None
    return sorted(row["fields"]["x"] for row in table.to_pyarrow_table(columns=["fields"]).to_pylist())
