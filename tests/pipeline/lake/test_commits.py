from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fieldfare.pipeline.lake.commits import LOG, Commit, File, State, commit, load


def file(name: str) -> File:
    return File(name, "trade", "2026-11-15", 1, 10)


def test_commits_add_and_remove(tmp_path: Path) -> None:
    assert load(tmp_path) == State()
    assert commit(tmp_path, lambda _: Commit((file("a"), file("b")), schema="{}", writer="w", batch=3))
    assert commit(tmp_path, lambda _: Commit((file("c"),), ("a",)))
    assert not commit(tmp_path, lambda _: None)
    state = load(tmp_path)
    assert (state.version, [*state.files], [*state.removed], state.batches, state.schema) == (
        2,
        ["b", "c"],
        ["a"],
        {"w": 3},
        "{}",
    )
    assert commit(tmp_path, lambda _: Commit(forget=("a",)))
    assert load(tmp_path).removed == {}


def test_writers_do_not_undo_each_other(tmp_path: Path) -> None:
    """Each of them counts on from what it finds, so a commit that was lost, or done twice, would show."""

    def write(writer: str) -> None:
        for _ in range(25):
            commit(
                tmp_path,
                lambda now: Commit((file(f"{now.version}"),), writer=writer, batch=now.batches.get(writer, -1) + 1),
            )

    with ThreadPoolExecutor() as pool:
        list(pool.map(write, "abc"))
    state = load(tmp_path)
    assert state.version == 75
    assert [*state.files] == [str(number) for number in range(75)]
    assert state.batches == {"a": 24, "b": 24, "c": 24}
    for number in range(1, 64):
        (tmp_path / LOG / f"{number:020}.json").unlink()
    assert load(tmp_path) == state, "readers begin at the last state that was written out"
