"""Subscriptions of nodes and files that change, against a node that answers badly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession
from tools.waiting import PATIENCE

from fieldfare.pipeline.job.config import Match
from fieldfare.pipeline.job.subscriptions import followed, of_node
from fieldfare.pipeline.match import catalogue

Items = list[dict[str, str]]


def item(id: str, session: str = "s") -> dict[str, str]:
    return {"session": session, "id": id, "filter": "x = 1"}


@contextmanager
def node(held: Callable[[int], Items | None]) -> Iterator[str]:
    """The address of a node; `held` gives what it has when it is asked from an offset, None to break off."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = {name: int(value) for name, [value] in parse_qs(urlsplit(self.path).query).items()}
            items = held(asked["offset"])
            some = (items or [])[asked["offset"] :][: asked["limit"]]
            body = json.dumps({"items": some, "total": len(items or [])}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if items is not None else body[:5])

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def ids(path: str | Path) -> set[Any]:
    return {id for id in catalogue.opened(str(path), catalogue.current(path)).ids.to_pylist() if id is not None}


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_no_two_subscriptions_have_one_id() -> None:
    given = [item("b/c", "a"), item("c", "a/b"), item("c", "a%2Fb"), item("9", "webhook:7")]
    with node(lambda _: given) as url:
        found = of_node(url)
    assert [one.id for one in found] == ["a/b/c", "a%2Fb/c", "a%252Fb/c", "webhook:7/9"]
    assert [one.owner for one in found] == [one["session"] for one in given]


@pytest.mark.parametrize("gone", [[0], [*range(50)], [*range(500)], [999]])
def test_what_is_removed_between_two_pages_hides_nothing_else(gone: list[int]) -> None:
    """Few before the page, many, and the very last one that was read; others come, and one comes back."""
    held = [item(str(n)) for n in range(2500)]
    asked = 0

    def changing(offset: int) -> Items:
        nonlocal asked, held
        asked += 1
        if asked == 2:
            held = [one for n, one in enumerate(held) if n not in gone] + [item("new"), item("0")]
        return held

    with node(changing) as url:
        found = [one.id for one in of_node(url)]
    assert len(set(found)) == len(found)
    assert set(found) >= {f"s/{n}" for n in range(2500) if n not in gone} | {"s/new"}


def test_a_node_that_changes_too_fast_says_so() -> None:
    with (
        node(lambda _: [item(f"{n} {time.monotonic_ns()}") for n in range(1500)]) as url,
        pytest.raises(OSError, match="its subscriptions change faster than they can be read"),
    ):
        of_node(url)


def test_a_node_that_breaks_off_is_asked_again(tmp_path: Path) -> None:
    asked = 0

    def held(_: int) -> Items | None:
        nonlocal asked
        asked += 1
        return None if asked in {1, 3, 4} else [item(str(n)) for n in range(asked)]

    told: list[str] = []
    with (
        node(held) as url,
        followed(None, Match(url, refresh=0.05), tmp_path, told.append) as path,  # type: ignore[arg-type]
    ):
        until(lambda: asked > 6 and len(ids(path)) > 4)
    assert [line.partition(" http")[0] for line in told] == ["the subscriptions stay as they are:"] * 2
    assert all("IncompleteRead" in line for line in told)


def test_a_node_without_subscriptions_empties_those_of_the_run_before(tmp_path: Path) -> None:
    for held in ([item("a")], list[dict[str, str]]()):
        with (
            node(lambda _, held=held: held) as url,  # type: ignore[misc]
            followed(None, Match(url, refresh=0.02), tmp_path, lambda _: None) as path,  # type: ignore[arg-type]
        ):
            assert ids(path) == {f"s/{one['id']}" for one in held}
            time.sleep(0.1)
    assert catalogue.versions(tmp_path / "subscriptions") == [1, 2], "nothing has changed within a run"


def test_a_file_that_is_half_written_is_read_again(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "wanted.parquet"

    def write(*ids: str) -> None:
        pa.parquet.write_table(pa.table({"id": [*ids], "filter": ["x = 1"] * len(ids)}), file)

    write("a")
    told: list[str] = []
    with followed(spark, Match(str(file), refresh=0.1), tmp_path / "state", told.append) as path:
        assert ids(path) == {"a"}
        file.write_bytes(b"half written")
        until(lambda: bool(told))
        write("a", "b")
        until(lambda: ids(path) == {"a", "b"})
    assert told[0].startswith("the subscriptions stay as they are: ")
    assert f"{file}. Could not read footer." in told[0]
    assert "\n" not in told[0]
