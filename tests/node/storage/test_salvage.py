"""A damaged folder of a node: what is whole stays, what is gone is said, and the node starts."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.msgpack import encode
from tests.node.talking import settings, talking
from typer.testing import CliRunner

from fieldfare.cli import app
from fieldfare.core.core import Core
from fieldfare.core.state import Publication
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node.config import Log as LogSettings
from fieldfare.node.node import Node
from fieldfare.node.server import running
from fieldfare.node.storage import parquet_segment, salvage_rows
from fieldfare.node.storage.log import Log, LogError
from fieldfare.node.storage.raw_format import HEADER_SIZE
from fieldfare.node.storage.rows import Store, StoreError
from fieldfare.node.storage.salvage import salvage
from fieldfare.node.storage.salvage_log import MARGIN
from fieldfare.node.storage.segments import raw_path
from fieldfare.node.storage.storage import Storage
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import JournalEntry, Row, StoredRows

LAST = 200
"""positions in the log of `made`"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with segments of both kinds; the session ana still waits for all events, bob for some."""
    folder = tmp_path_factory.mktemp("node") / "data"

    async def make() -> None:
        node = Node(settings("a", folder))
        await node.start()
        for name in ("ana", "bob", "publisher"):
            await node.submit(lambda core, now, name=name: core.presence.attach(name, f"id-{name}", now))  # type: ignore[misc]
        for name, filter in (("ana", "n >= 0"), ("bob", "n >= 100")):
            subscribe = m.Subscribe("q", parse(filter))
            await node.submit(partial(_subscribe, name, subscribe))
        for first in range(0, LAST, 4):
            events = [Event({"n": number, "text": "x" * (number % 50)}) for number in range(first, first + 4)]
            await node.publish(Publication("publisher", 0, events))
            assert node.storage._disk is not None
            if first in (48, 96, 148):
                node.storage._disk.roll()
            if first == 120:
                node.storage._disk.seal()
        await node.stop()

    asyncio.run(make())
    assert [path.suffix for path in sorted((folder / "log").iterdir())] == [".parquet", ".parquet", ".log", ".log"]
    return folder


def _subscribe(name: str, subscribe: m.Subscribe, core: Core, now: float) -> None:
    core.presence.change_filters(subscribe, name, now)


def _content(folder: Path) -> tuple[StoredRows, dict[int, JournalEntry]]:
    storage = Storage(folder, LogSettings())
    stored, _ = storage.load()
    entries = {entry.position: entry for entry in storage.log.read(1)}
    storage.close()
    return stored, entries


def _started(folder: Path) -> tuple[dict[str, tuple[list[int], int]], int]:
    """Start a node: the positions that wait for each session, what it has dropped, and the next position."""

    async def start() -> tuple[dict[str, tuple[list[int], int]], int]:
        node = Node(settings("a", folder))
        await node.start()
        waiting = {
            name: (sorted(pending.position for pending in one.pending.values()), one.dropped)
            for name, one in node.core.sessions.items()
        }
        await node.submit(lambda core, now: core.presence.attach("new", "new", now))
        await node.publish(Publication("new", 0, [Event({"n": -1})]))
        position = node.storage.log.last
        await node.stop()
        return waiting, position

    return asyncio.run(start())


def _damage(path: Path, how: str, dice: random.Random) -> str:
    data = bytearray(path.read_bytes())
    at = dice.randrange(len(data))
    if how == "flip":
        data[at] ^= 1 << dice.randrange(8)
    elif how == "cut":
        del data[at:]
    elif how == "zeros":
        data[at : at + 200] = bytes(len(data[at : at + 200]))
    path.write_bytes(data)
    if how == "delete":
        path.unlink()
    return f"{path.name}: {how} at {at}"


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_damaged_the_node_starts_with_the_rest(made: Path, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    before, entries_before = _content(made)
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    files = [*sorted((folder / "log").iterdir()), folder / "node.sqlite"]
    path = files[seed % len(files)]
    what = _damage(path, dice.choice(["flip", "flip", "flip", "cut", "zeros", "delete"]), dice)
    report = salvage(folder)
    again = salvage(folder)
    assert (again.is_whole, again.problems) == (True, []), what
    stored, entries = _content(folder)
    assert all(entries_before[position] == entry for position, entry in entries.items()), what
    gone = entries_before.keys() - entries.keys()
    assert gone <= {at for gap in report.gaps for at in range(gap.first, min(gap.last, LAST) + 1)}, what
    waiting, position = _started(folder)
    assert position > LAST, (what, "a position must not stand for two events")
    if path.name != "node.sqlite":
        assert stored["session"].keys() == before["session"].keys(), what
        assert waiting["ana"] == (sorted(entries), len(gone)), what
    assert stored.get("salvaged", {}) == ({} if report.is_whole else {(): 1}), what
    kept = [key for kind in before for key in before[kind] if key in stored.get(kind, {})]
    lost = sum(map(len, before.values())) - len(kept)
    assert not lost or report.rows or stored["life"][()] > 1000, what


def test_one_flipped_bit_in_a_raw_segment_costs_one_event(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    for name in ("events-00000000000000000101.log", "events-00000000000000000153.log"):
        path = folder / "log" / name
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 16
        path.write_bytes(data)
    with pytest.raises(LogError, match="fieldfare admin salvage"):
        Storage(folder, LogSettings())
    report = salvage(folder)
    assert [(gap.last - gap.first, gap.exact) for gap in report.gaps] == [(0, True), (0, True)]
    lost = {gap.first for gap in report.gaps}
    assert _content(folder)[1].keys() == set(range(1, LAST + 1)) - lost
    assert report.dropped == {"ana": 2, "bob": 2}
    assert report.originals is not None
    originals = Path(report.originals)
    assert {path.name for path in originals.iterdir()} == {
        "events-00000000000000000101.log",
        "events-00000000000000000153.log",
        "report.json",
    }
    assert json.loads((originals / "report.json").read_bytes())["dropped"] == {"ana": 2, "bob": 2}


def test_the_node_delivers_the_rest_and_says_what_is_gone(
    made: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    (folder / "log" / "events-00000000000000000101.log").unlink()
    salvage(folder)

    async def test() -> None:
        async with running(settings("a", folder)) as service, talking(service, "bob") as bob:
            found = await bob.deliveries(LAST - 152)
            assert [one.position for one in found] == list(range(153, LAST + 1))
            assert service.node.core.sessions["bob"].dropped == 52
            await bob.subscribe("old", "n >= 95", since=90)
            old = await bob.deliveries(5 + LAST - 152)
            assert [one.position for one in old] == [*range(96, 101), *range(153, LAST + 1)]

    asyncio.run(test())
    assert "the events at positions 101 to 152 are gone" in caplog.text
    assert "this node has lost something 1 times: see report.json" in caplog.text


def test_a_damaged_last_record_keeps_its_position(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    log = Log(folder / "log")
    log.append([JournalEntry(number, 1.0, "ana", number, b"\x80", b"\x92\xa0\xa0") for number in range(1, 6)])
    log.close()
    path = raw_path(folder / "log", 1)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    store = Store(folder / "node.sqlite")
    store.commit([Row("name", (), "a")])
    store.close()
    report = salvage(folder)
    assert [(gap.first, gap.last, gap.exact) for gap in report.gaps] == [(5, 5, True)]
    log = Log(folder / "log")
    assert (log.last, [entry.position for entry in log.read(1)]) == (5, [1, 2, 3, 4])
    log.append([JournalEntry(6, 2.0, "ana", 6, b"\x80", b"\x92\xa0\xa0")])
    log.close()


def test_where_the_end_is_missing_positions_are_left_out(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    (folder / "log" / "events-00000000000000000153.log").unlink()
    report = salvage(folder)
    assert [(gap.first, gap.last, gap.exact) for gap in report.gaps] == [(153, LAST + MARGIN, False)]
    assert report.dropped == {"ana": 48, "bob": 48}
    assert _started(folder)[1] == LAST + MARGIN + 1


def test_a_header_that_is_gone_costs_no_event(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    path = folder / "log" / "events-00000000000000000153.log"
    path.write_bytes(bytes(HEADER_SIZE) + path.read_bytes()[HEADER_SIZE:])
    report = salvage(folder)
    assert (report.is_whole, len(report.problems)) == (True, 1)
    assert len(_content(folder)[1]) == LAST


def test_a_flipped_bit_in_the_footers_of_parquet_is_noticed_and_costs_no_event(made: Path, tmp_path: Path) -> None:
    original = next((made / "log").glob("*.parquet"))
    whole = original.read_bytes()
    begin = whole.index(b"PAR1", 4) - int.from_bytes(whole[whole.index(b"PAR1", 4) - 4 :][:4], "little") - 4
    log = tmp_path / "data" / "log"
    log.mkdir(parents=True)
    path = log / original.name
    dice = random.Random(2)
    (expected,) = parquet_segment.Sealed(original, 1, 52, len(whole)).read(1, 52)
    for at in dice.sample(range(begin, len(whole)), 40):
        for file in log.iterdir():
            file.unlink()
        data = bytearray(whole)
        data[at] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        with pytest.raises(LogError, match="fieldfare admin salvage"):
            parquet_segment.Sealed(path, 1, 52, len(data)).check()
        salvage(tmp_path / "data")
        found = Log(log)
        assert list(found.read(1)) == expected, at
        found.close()


ROWS = [
    Row("name", (), "a"),
    Row("life", (), 3),
    Row("checkpoint", (), 0),
    *(Row("session", (name,), [name, 0, 0, 0, 1.0, 1, 0, "", "", 0, 0]) for name in ("ana", "bob")),
    *(Row("subscriptions", (name, id), f"n = {number}") for name in ("ana", "bob") for number, id in enumerate("pq")),
    *(Row("neighbour", (name,), ["peer", 1, "mine", "theirs", [1, 0, 0, 0], 0]) for name in ("oslo", "rome")),
    *(Row("told", (name, "subscriptions", f"n = {n}"), 1) for name in ("oslo", "rome") for n in (7, 8)),
    *(Row("outbox", (name, 1), b"message to " + name.encode()) for name in ("oslo", "rome")),
]


def _without(tmp_path: Path, kind: str, key: tuple[Any, ...]) -> salvage_rows.Rows:
    """What is left of `ROWS` if one of them is damaged."""
    path = tmp_path / "node.sqlite"
    store = Store(path)
    store.commit(ROWS)
    store._connection.execute("UPDATE rows SET checksum = 7 WHERE kind = ? AND key = ?", (kind, encode(key)))
    store.close()
    return salvage_rows.look(path)


def test_what_leans_on_a_lost_session_goes_with_it(tmp_path: Path) -> None:
    rows = _without(tmp_path, "session", ("ana",))
    assert {(one.kind, one.key) for one in rows.gone} == {
        ("session", ("ana",)),
        ("subscriptions", ("ana", "p")),
        ("subscriptions", ("ana", "q")),
    }
    assert rows.kept.keys() == {(row.kind, row.key) for row in ROWS} - {(one.kind, one.key) for one in rows.gone}


def test_what_leans_on_a_lost_neighbour_goes_with_it(tmp_path: Path) -> None:
    rows = _without(tmp_path, "neighbour", ("rome",))
    assert {(one.kind, one.key[0]) for one in rows.gone} == {
        ("neighbour", "rome"),
        ("told", "rome"),
        ("outbox", "rome"),
    }
    assert ("outbox", ("oslo", 1)) in rows.kept


def test_a_neighbour_of_which_a_filter_is_lost_gets_everything(tmp_path: Path) -> None:
    rows = _without(tmp_path, "told", ("rome", "subscriptions", "n = 7"))
    assert [(one.kind, one.key) for one in rows.gone] == [("told", ("rome", "subscriptions", "n = 7"))]
    assert ("told", ("rome", "subscriptions", "TRUE")) in rows.kept
    assert ("told", ("oslo", "subscriptions", "TRUE")) not in rows.kept


def test_what_can_be_made_again_is_not_lost(tmp_path: Path) -> None:
    rows = _without(tmp_path, "life", ())
    assert (rows.gone, rows.made) == ([], ["life"])
    folder = tmp_path
    report = salvage(folder)
    assert report.is_whole
    store = Store(folder / "node.sqlite")
    assert store.load()["life"][()] > 700_000_000, "later than any life before"
    store.close()


@pytest.mark.parametrize("seed", range(8))
def test_of_a_damaged_store_all_whole_rows_stay(tmp_path: Path, seed: int) -> None:
    """A flipped bit costs the row it is in, and one in the header or in a pointer costs nothing."""
    path = tmp_path / "node.sqlite"
    store = Store(path)
    rows = {("webhook", (f"hook {number}",)): "x" * (number * 37 % 3000) for number in range(250)}
    store.commit(Row(kind, key, value) for (kind, key), value in rows.items())
    store.commit(Row("webhook", (f"hook {number}",)) for number in range(0, 100, 2))
    store.close()
    rows = {place: value for place, value in rows.items() if place[1] not in {(f"hook {n}",) for n in range(0, 100, 2)}}
    whole = path.read_bytes()
    dice = random.Random(seed)
    for at in [*dice.sample(range(100), 4), *dice.sample(range(len(whole)), 12)]:
        data = bytearray(whole)
        data[at] ^= 1 << dice.randrange(8)
        path.write_bytes(data)
        found = salvage_rows.look(path)
        assert found.kept.items() <= rows.items(), at
        assert len(rows) - len(found.kept) <= (60 if at >= 100 else 0), at  # a whole page, at most
        assert len(found.kept) == len(rows) or found.gone, at


@pytest.mark.parametrize("size", [0, None])
def test_a_store_that_is_gone_is_no_new_one(made: Path, tmp_path: Path, size: int | None) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    (folder / "node.sqlite").unlink()
    if size is not None:
        (folder / "node.sqlite").write_bytes(bytes(size))
    with pytest.raises(StoreError, match="it is empty, but there are events in the log"):
        Storage(folder, LogSettings())
    assert not salvage(folder).is_whole
    assert salvage(folder).is_whole
    assert _started(folder) == ({}, LAST + 1)


def test_commits_behind_a_flipped_bit_in_the_write_ahead_log_stay(tmp_path: Path) -> None:
    path, wal = tmp_path / "node.sqlite", tmp_path / "node.sqlite-wal"
    store = Store(path)
    for number in range(20):
        store.commit([Row("webhook", (f"hook {number}",), "x" * 100), Row("name", (), f"a{number}")])
    files = {file: file.read_bytes() for file in (path, wal)}  # as a kill leaves them
    store.close()
    path.write_bytes(files[path])
    data = bytearray(files[wal])
    data[len(data) // 3] ^= 1
    wal.write_bytes(data)
    with pytest.raises(StoreError, match=r"node\.sqlite-wal is damaged"):
        Store(path)
    assert salvage(tmp_path).is_whole, "later commits wrote the page again"
    store = Store(path)
    rows = store.load()
    store.close()
    assert (rows["name"], len(rows["webhook"])) == ({(): "a19"}, 20)


def test_a_dry_run_changes_nothing(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    (folder / "log" / "events-00000000000000000101.log").unlink()
    (folder / "node.sqlite").write_bytes((folder / "node.sqlite").read_bytes()[:5000])
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    report = salvage(folder, dry_run=True)
    assert (len(report.gaps), bool(report.rows), report.originals) == (1, True, None)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_folder_in_use_and_a_folder_of_nobody_are_refused(made: Path, tmp_path: Path) -> None:
    storage = Storage(tmp_path / "data", LogSettings())
    with pytest.raises(StoreError, match="is used by another node that runs now"):
        salvage(tmp_path / "data")
    storage.close()
    assert salvage(tmp_path / "data").is_whole
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match="no folder of a node"):
        salvage(tmp_path / "empty")


def test_the_command_line_lists_what_is_gone(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(made, folder)
    runner = CliRunner()
    whole = runner.invoke(app, ["admin", "salvage", str(folder)])
    assert (whole.exit_code, whole.output) == (0, "Everything is whole.\n")
    path = folder / "node.sqlite"
    path.write_bytes(path.read_bytes().replace(b"id-ana", b"id-anb"))
    (folder / "log" / "events-00000000000000000101.log").unlink()
    up = [sys.executable, "-m", "fieldfare", "up", "--data", str(folder), "--name", "a", "--port", "0"]
    started = subprocess.run(up, capture_output=True, text=True, check=False, timeout=120)
    assert (started.returncode, started.stdout) == (1, "")
    assert "the row of kind 'session' with key ['ana'] has a wrong checksum" in started.stderr
    assert f"fieldfare admin salvage {folder}" in started.stderr
    assert "Traceback" not in started.stderr
    planned = runner.invoke(app, ["admin", "salvage", str(folder), "--dry-run", "--json"])
    assert planned.exit_code == 1
    assert [gap["first"] for gap in json.loads(planned.output)["gaps"]] == [101]
    done = runner.invoke(app, ["admin", "salvage", str(folder)])
    assert done.exit_code == 1
    text = " ".join(done.output.split())
    assert "log 101 to 152 52 events a file is missing" in text
    assert "session ana 1 row its checksum is wrong" in text
    assert "subscriptions ana q 1 row the session ana is gone" in text
    assert "session bob at most 52 events waited for it, and counts as dropped" in text
    again = runner.invoke(app, ["admin", "salvage", str(folder)])
    assert (again.exit_code, again.output) == (0, "Everything is whole.\n")
    assert runner.invoke(app, ["admin", "salvage", str(tmp_path)]).exit_code == 2
