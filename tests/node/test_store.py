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

from fieldfare.node.kept import Row
from fieldfare.node.store import Store, StoreError

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
from fieldfare.node.durable import Row
from fieldfare.node.store import Store
store = Store(sys.argv[1])
number = max((key[0] for key in store.load().get("event", {})), default=0)
while True:
    number += 1
    store.commit([Row("event", (number,), b"x" * 100), Row("pending", ("ana", number), ["s"])])
    print(number, flush=True)
"""


def test_a_kill_loses_nothing_that_was_said_to_be_safe(tmp_path: Path) -> None:
    path, dice, safe = tmp_path / "rows.db", random.Random(1), 0
    for _ in range(5):
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
