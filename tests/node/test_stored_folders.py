"""Folders that an older Fieldfare has left after a kill: the present node goes on with them.

`tools/nodes/stored_folder.py` has written them, with the code of the revision that their folder is named after.
"""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.node.talking import linked, settings, talking, until

from fieldfare.node.server import running

FOLDERS = sorted(path for path in (Path(__file__).parent / "folders").iterdir() if path.is_dir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_node_goes_on_with_the_folder_of_an_older_one(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    for name in "ab":
        shutil.copytree(folder / name, tmp_path / name)
    replicas = {"sessions.replicas": 1}

    async def test() -> None:
        async with running(settings("a", tmp_path / "a", replicas)) as a:
            core = a.node.core
            assert core.position == expected["log"]
            assert core.sessions["bob"].sequence == expected["publishers"]["bob"]
            for name, session in expected["sessions"].items():
                found = core.sessions[name]
                counts = found.identity, found.acknowledged, found.count
                assert counts == (session["identity"], session["acknowledged"], session["count"])
                pending = {str(number): list(one.subscriptions) for number, one in found.pending.items()}
                assert pending == session["pending"]
            filters = {
                name: {id: str(filter) for id, filter in client.subscriptions.items()}
                for name, client in core.broker.clients.all.items()
            }
            assert {name: filters[name] for name in expected["filters"] if name[0] != "~"} == {
                name: one for name, one in expected["filters"].items() if name[0] != "~"
            }
            assert sorted(map(str, core.interest())) == expected["interest"]
            assert len(core.links["b"].outbox) >= expected["for b"]  # the new process announces its filters, too
            assert core.other_rows["webhook"]
            async with talking(a, "ana", identity=expected["sessions"]["ana"]["identity"]) as ana:
                due = [int(number) for number in expected["sessions"]["ana"]["pending"]]
                assert [one["n"] for one in await ana.events(len(due))] == due  # all that was published was for ana
            with_a = {**replicas, "join": (a.hood.url,)}
            async with running(settings("b", tmp_path / "b", with_a)) as b, talking(b, "eve") as eve:
                await linked(a, b)
                due = [n for n in range(1, 44) if n % 20 < 10 and n != 41]  # 42 has replaced 41
                assert [one["n"] for one in await eve.events(len(due))] == due
                assert "fay" in b.node.core.sessions
                assert "ana" in b.node.core.replicas.held
                await until(lambda: not a.node.core.links["b"].outbox)

    with caplog.at_level(logging.WARNING):
        asyncio.run(test())
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []
