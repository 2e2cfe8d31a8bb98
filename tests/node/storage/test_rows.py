from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import encode

from fieldfare.node.storage.rows import Store, StoreDamaged, StoreError
from fieldfare.protocol.journal import Row

keys = st.tuples(st.sampled_from("ab"), st.integers(0, 3))
values = (
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=5) | st.lists(st.text(max_size=3), max_size=2)
)
rows = st.builds(Row, st.sampled_from(["event", "outbox"]), keys, values)


@given(st.lists(st.lists(rows, max_size=6), max_size=6))
def test_what_was_committed_is_there(commits: list[list[Row]]) -> None:
    store = Store(":memory:")
    expected: dict[str, dict[tuple[Any, ...], Any]] = {}
    for commit in commits:
        store.commit(commit)
        for kind, key, value in commit:
            table = expected.setdefault(kind, {})
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value
        assert store.load() == {kind: table for kind, table in expected.items() if table}
    store.close()


def test_it_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "rows.db")
    store.commit([Row("event", (1,), b"one")])
    store.close()
    again = Store(tmp_path / "rows.db", sync="full")
    assert again.load() == {"event": {(1,): b"one"}}
    again.close()


def test_a_commit_that_fails_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "rows.db")
    with pytest.raises(TypeError):
        store.commit([Row("event", (1,), b"one"), Row("event", (2,), object())])
    assert store.load() == {}
    store.close()


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database, but long enough to be looked at as one" * 100)
    with pytest.raises(StoreError, match="is no store"):
        Store(tmp_path / "text")
    newer = sqlite3.connect(tmp_path / "newer.db")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(StoreError, match="has format 99"):
        Store(tmp_path / "newer.db")


WRITER = """
import sys
from fieldfare.core.core import Row
from fieldfare.node.storage.rows import Store, StoreDamaged, StoreError
store = Store(sys.argv[1])
number = max((key[0] for key in store.load().get("event", {})), default=0)
while True:
    number += 1
    store.commit([Row("event", (number,), b"x" * 100), Row("pending", ("ana", number), ["s"])])
    print(number, flush=True)
"""


def test_a_kill_loses_nothing_that_was_said_to_be_safe(tmp_path: Path) -> None:
    path, dice, safe = tmp_path / "rows.db", random.Random(1), 0
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for _ in range(dice.randint(1, 200)):
            safe = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
        safe = max([safe, *(int(line) for line in child.stdout.read().split("\n")[:-1] if line)])
        child.wait()
        child.stdout.close()
        store = Store(path)
        found = store.load()
        store.close()
        assert {key[0] for key in found["event"]} >= set(range(1, safe + 1))
        assert {key[1] for key in found["pending"]} == {key[0] for key in found["event"]}, "all or none"


def _filled(path: Path) -> dict[str, dict[tuple[Any, ...], Any]]:
    """A store as a node leaves it, with free pages, too; and what is in it."""
    store = Store(path)
    store.commit([Row("name", (), "a"), Row("life", (), 3), Row("checkpoint", (), 1234)])
    for number in range(100):
        session = ["id", number, number * 2, number, 123.5, number * 7, 0, "ana", "", 0, 0]
        store.commit([Row("session", (f"s{number}",), session)])
        store.commit([Row("subscriptions", (f"s{number}", "q"), f"price < {number} AND symbol = 'IBM'")])
        store.commit([Row("outbox", ("rome", number), b"x" * 200)])
    store.commit([Row("outbox", ("rome", number)) for number in range(40)])
    rows = store.load()
    store.close()
    return rows


def _with_flip(path: Path, whole: bytes, at: int, bit: int) -> None:
    for file in path.parent.iterdir():
        file.unlink()
    data = bytearray(whole)
    data[at] ^= 1 << bit
    path.write_bytes(data)


def test_a_flipped_bit_anywhere_is_harmless_or_found_and_said(tmp_path: Path) -> None:
    path = tmp_path / "node.sqlite"
    rows = _filled(path)
    whole = path.read_bytes()
    dice = random.Random(5)
    places = [*range(112), *dice.sample(range(112, 4096), 90), *dice.sample(range(4096, len(whole)), 250)]
    said = []
    for at in places:
        bit = dice.randrange(8)
        _with_flip(path, whole, at, bit)
        try:
            store = Store(path)
        except StoreError as error:
            said.append(str(error))
            continue
        try:  # the file goes on as if nothing had been
            assert store.load() == rows, (at, bit)
            store.commit([Row("session", ("s1",), 5), Row("outbox", ("rome", 63)), Row("new", (1,), 2)])
        finally:
            store.close()
        again = Store(path)
        assert again.load()["session"][("s1",)] == 5, (at, bit)
        again.close()
    assert len(said) > 150
    assert all(f"{path} is damaged: " in text and f"fieldfare admin salvage {tmp_path}" in text for text in said)


def test_a_damaged_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "node.sqlite"
    _filled(path)
    whole = path.read_bytes()
    _with_flip(path, whole, whole.index(b"price < 77") + 3, 2)
    with pytest.raises(StoreDamaged, match=r"kind 'subscriptions' with key \['s77', 'q'\] has a wrong checksum"):
        Store(path)


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("DELETE FROM rows WHERE kind = 'session' AND key = x'91a27337'", "263 rows belong there, and 262 are"),
        ("DELETE FROM rows WHERE kind = 'digest'", "the row is missing that sums up the others"),
        ("DELETE FROM rows", "the row is missing that sums up the others"),
        ("DROP TABLE rows", "its tables are not those that were made"),
        ("CREATE TABLE more (a)", "its tables are not those that were made"),
    ],
)
def test_what_is_missing_is_noticed(tmp_path: Path, sql: str, problem: str) -> None:
    path = tmp_path / "node.sqlite"
    _filled(path)
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    connection.close()
    with pytest.raises(StoreDamaged, match=problem):
        Store(path)


def test_a_row_from_the_past_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "node.sqlite"
    _filled(path)
    connection = sqlite3.connect(path)
    old = connection.execute("SELECT * FROM rows WHERE kind = 'checkpoint'").fetchone()
    connection.close()
    store = Store(path)
    store.commit([Row("checkpoint", (), 2000)])
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?, ?)", old)
    connection.commit()
    connection.close()
    with pytest.raises(StoreDamaged, match="some rows are too old"):
        Store(path)


def test_a_store_without_checksums_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "node.sqlite"
    old = sqlite3.connect(path)
    old.execute("PRAGMA journal_mode = WAL")
    old.execute(
        "CREATE TABLE IF NOT EXISTS rows"
        " (kind TEXT NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL, PRIMARY KEY (kind, key)) WITHOUT ROWID"
    )
    old.execute("PRAGMA user_version = 1")
    for number in range(50):
        old.execute("INSERT INTO rows VALUES ('event', ?, ?)", (encode((number,)), encode("x" * number)))
    old.commit()
    old.close()
    before = path.read_bytes()
    path.write_bytes(before.replace(b"\xd9\x28" + b"x" * 40, b"\xc1\x28" + b"x" * 40))
    with pytest.raises(StoreDamaged, match=r"kind 'event' with key \[40\] cannot be read"):
        Store(path)
    path.write_bytes(before)
    expected = {"event": {(number,): "x" * number for number in range(50)}}
    for _ in range(2):
        store = Store(path)
        assert store.load() == expected
        store.close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"x" * 40, b"x" * 39 + b"y"))
    with pytest.raises(StoreDamaged, match="kind 'event'"):
        Store(path)


def test_a_flipped_bit_in_what_a_kill_left_is_found(tmp_path: Path) -> None:
    """SQLite would take back all commits behind it, without a word."""
    path = tmp_path / "node.sqlite"
    store = Store(path)
    for number in range(30):
        store.commit([Row("session", (f"s{number}",), ["id", number])])
    rows = store.load()
    files = {file.name: file.read_bytes() for file in tmp_path.iterdir()}  # as they are when the node is killed
    store.close()
    log = files["node.sqlite-wal"]
    frames = (len(log) - 32) // (24 + 4096)
    dice = random.Random(3)

    def opened(data: bytes) -> dict[str, dict[tuple[Any, ...], Any]]:
        for file in tmp_path.iterdir():
            file.unlink()
        path.write_bytes(files["node.sqlite"])
        (tmp_path / "node.sqlite-wal").write_bytes(data)
        store = Store(path)
        try:
            return store.load()
        finally:
            store.close()

    assert opened(log) == rows
    assert opened(log[:-10]) != rows, "a torn end goes"
    for at in [*range(0, 32, 3), *(dice.randrange(32, 32 + (24 + 4096) * (frames - 1)) for _ in range(60))]:
        data = bytearray(log)
        data[at] ^= 1 << dice.randrange(8)
        with pytest.raises(StoreDamaged, match=r"node.sqlite-wal is damaged: .* has a wrong checksum"):
            opened(bytes(data))


def test_a_commit_that_a_kill_cut_short_is_no_damage(tmp_path: Path) -> None:
    """Smaller commits are written over its frames, and the rest of these stays behind them."""
    path, log = tmp_path / "node.sqlite", tmp_path / "node.sqlite-wal"

    def killed(rows: list[Row]) -> dict[Path, bytes]:
        store = Store(path)
        store.commit(rows)
        files = {file: file.read_bytes() for file in (path, log)}
        store.close()
        return files

    def left(files: dict[Path, bytes]) -> None:
        for file in tmp_path.iterdir():
            file.unlink()
        for file, data in files.items():
            file.write_bytes(data)

    files = killed([Row("outbox", ("rome", number), b"x" * 1000) for number in range(100)])
    files[log] = files[log][: -3 * (24 + 4096)]  # the commit did not come to its end
    left(files)
    left(killed([Row("session", ("ana",), 1)]))
    store = Store(path)
    assert store.load() == {"session": {("ana",): 1}}
    store.close()


def test_a_power_failure_that_left_out_a_frame_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, log = tmp_path / "node.sqlite", tmp_path / "node.sqlite-wal"
    store = Store(path)
    store.commit([Row("session", ("ana",), 1)])
    begin = log.stat().st_size
    for number in range(2, 6):
        store.commit([Row("session", ("ana",), number)])
    files = {file: file.read_bytes() for file in (path, log)}
    store.close()
    path.write_bytes(files[path])
    log.write_bytes(files[log][:begin] + bytes(24 + 4096) + files[log][begin + 24 + 4096 :])
    store = Store(path)
    assert store.load() == {"session": {("ana",): 1}}
    store.close()
    assert "the last commits are not all there" in caplog.text
