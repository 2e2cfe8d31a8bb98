"""`fieldfare_webhooks`: what receivers get, and what becomes of the rest."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from tests.pipeline.nodes import run

from fieldfare.pipeline.options import OptionError
from fieldfare.pipeline.sinks.formats.http_post import post_all
from fieldfare.pipeline.sinks.formats.webhooks import (
    DeliveryFailed,
    WebhookOptions,
    WebhooksFormat,
    WebhooksWriter,
    deliveries,
)
from fieldfare.pipeline.sources import register

Request = tuple[str, dict[str, str], bytes]


@contextlib.contextmanager
def receiver() -> Iterator[tuple[str, list[Request]]]:
    """Takes what is sent to /ok; at /flaky only the third time; at /bad never."""
    taken: list[Request] = []
    tries: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            tries[headers.get("ce-id", "")] += 1
            status = {"/ok": 202, "/bad": 400}.get(self.path, 202 if tries[headers.get("ce-id", "")] > 2 else 503)
            if status == 202:
                taken.append((self.path, headers, body))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def batch(**columns: list[Any]) -> pa.RecordBatch:
    return pa.record_batch(columns)


def test_rows_become_cloudevents_with_ids_that_stay() -> None:
    cloud = {"specversion": "1.0", "id": "own", "source": "/till", "type": "sale", "data": {"sum": 5}}
    rows = batch(event=['{"n": 1}', json.dumps(cloud), '{"n": 1}'], position=[7, 8, None])
    with receiver() as (url, taken):
        given = WebhookOptions(url=f"{url}/ok", source="/here", authorization="Bearer x")
        for _ in range(2):
            assert post_all(deliveries(rows, given), given) == []
        seen = [(headers["ce-id"], headers["ce-source"], json.loads(body)) for _, headers, body in taken]
        assert seen[:3] == seen[3:]
        assert seen[:2] == [("7", "/here", {"n": 1}), ("own", "/till", {"sum": 5})]
        assert len(seen[2][0]) == 32
        assert {headers["authorization"] for _, headers, _ in taken} == {"Bearer x"}
        taken.clear()
        structured = WebhookOptions(url=f"{url}/ok", mode="structured")
        assert post_all(deliveries(rows, structured), structured) == []
        assert json.loads(taken[1][2]) == cloud
        assert taken[1][1]["content-type"] == "application/cloudevents+json"


def test_what_cannot_be_delivered_is_an_error_or_a_dead_letter(tmp_path: Path) -> None:
    with receiver() as (url, taken):
        texts = ['{"n": 1}', "[", '{"n": 2}', '{"n": 3}', None, '{"n": 4}']
        urls = [f"{url}/flaky", f"{url}/ok", f"{url}/bad", "ftp://x", f"{url}/ok", "http://127.0.0.1:9/"]
        rows = batch(event=texts, url=urls, id=list("abcdef"))
        failing = WebhooksWriter(WebhookOptions(attempts=3, backoff=0.01))
        with pytest.raises(
            DeliveryFailed, match=r"5 events could not be delivered; that with the id b to .*/ok: it is no"
        ):
            failing.write(iter([rows]))
        writer = WebhooksWriter(WebhookOptions(attempts=3, backoff=0.01, dead_letters=str(tmp_path)))
        writer.commit([writer.write(iter([rows])), None])
    assert [headers["ce-id"] for _, headers, _ in taken] == ["a", "a"]
    (file,) = tmp_path.iterdir()
    letters = {letter["id"]: letter for letter in map(json.loads, file.read_text().splitlines())}
    assert {id: (letter["event"], letter["attempts"]) for id, letter in letters.items()} == {
        "b": ("[", 0),
        "c": ('{"n": 2}', 1),
        "d": ('{"n": 3}', 0),
        "e": (None, 0),
        "f": ('{"n": 4}', 3),
    }
    assert letters["c"]["reason"].startswith("400")


def test_a_stream_is_delivered_and_what_is_done_again_has_the_same_dead_letters(
    spark: SparkSession, tmp_path: Path
) -> None:
    register(spark)
    (tmp_path / "in").mkdir()
    rows = [{"event": json.dumps({"n": n}), "url": "/bad" if n % 5 == 0 else "/ok"} for n in range(50)]
    options = {"dead_letters": str(tmp_path / "dead"), "backoff": "0.01"}
    with receiver() as (url, taken):
        lines = [json.dumps({**row, "url": url + row["url"]}) for row in rows]
        (tmp_path / "in" / "a.json").write_text("\n".join(lines))
        stream = spark.readStream.schema("event string, url string").json(str(tmp_path / "in"))
        for _ in range(2):
            run(stream, "fieldfare_webhooks", tmp_path / "checkpoint", options)
            for file in ("0", ".0.crc"):  # as if the driver had been killed just before
                (tmp_path / "checkpoint" / "commits" / file).unlink()
    found = Counter(json.loads(body)["n"] for _, _, body in taken)
    assert found == {n: 2 for n in range(50) if n % 5}
    assert len({headers["ce-id"] for _, headers, _ in taken}) == 40
    dead = spark.read.json(str(tmp_path / "dead")).collect()
    assert sorted(json.loads(row.event)["n"] for row in dead) == list(range(0, 50, 5))


def test_columns_that_are_missing_are_named() -> None:
    with pytest.raises(
        OptionError, match=r"wants a column `event`, and a column or an option `url`; .* are \['event'\]"
    ):
        WebhooksFormat({}).streamWriter(StructType().add("event", "string"), overwrite=False)
