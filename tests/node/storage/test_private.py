"""A node's files belong to their user alone."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.node.talking import settings, talking

from fieldfare.node.config import Log as LogSettings
from fieldfare.node.server import running
from fieldfare.node.storage.log import export
from fieldfare.node.storage.storage import Storage
from fieldfare.protocol.journal import JournalEntry, Row

pytestmark = pytest.mark.needs("file modes")


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def _open_to_others(folder: Path) -> list[str]:
    paths = [folder, *folder.rglob("*")]
    return [str(path) for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077]


@pytest.mark.usefixtures("no_umask")
def test_nobody_else_can_read_what_a_node_writes(tmp_path: Path) -> None:
    folder = tmp_path / "data"

    async def test() -> None:
        async with running(settings("a", folder)) as service, talking(service, "ana") as ana:
            await ana.subscribe("all", "TRUE")
            await ana.publish(1, {"price": 1})
            assert {path.name for path in folder.iterdir()} >= {"node.sqlite", "node.sqlite-wal", "node.sqlite-shm"}
            assert _open_to_others(folder) == []

    asyncio.run(test())
    storage = Storage(folder, LogSettings())
    log = storage._disk
    assert log is not None
    first = log.last + 1
    log.append(
        [JournalEntry(number, 1.0, "ana", number, b"\x80", b"\x92\xa0\xa0") for number in range(first, first + 10)]
    )
    log.roll()
    log.seal()
    export(log, folder / "export.parquet")
    storage.close()
    assert {path.suffix for path in (folder / "log").iterdir()} == {".log", ".parquet"}
    assert _open_to_others(folder) == []


@pytest.mark.usefixtures("no_umask")
def test_a_folder_that_others_could_read_is_tightened(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "data"
    storage = Storage(folder, LogSettings())
    storage.remember(Row("name", (), "a"))
    storage.close()
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    Storage(folder, LogSettings()).close()
    assert _open_to_others(folder) == []
    assert f"others could read {folder}: it is private now" in caplog.text


@pytest.mark.usefixtures("no_umask")
def test_a_folder_of_somebody_else_keeps_its_mode(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o755)
    (folder / "there").mkdir()
    Storage(folder, LogSettings()).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert f"others can look into {folder}" in caplog.text
    assert _open_to_others(folder / "log") == []
    assert [path for path in folder.iterdir() if path.is_file() and path.stat().st_mode & 0o077] == []
