"""Entries of the history of speed: which earlier entry counts, what an alert is, and that entries come back from disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.bars import __main__ as command
from tools.bars import history, measure
from tools.bars.history import Entry, Figure, Line


def entry(time: str = "2026-11-16T15:00:00Z", *, dirty: bool = False, load: float = 0.5, **costs: float) -> Entry:
    """A run on a machine whose yardstick is 2 µs."""
    figures = {bar: Figure(cost, 2.0, [cost, cost + 1]) for bar, cost in costs.items()}
    return Entry(time, "abc1234", dirty, "3.11.2", "a machine", 2, load, figures)


def test_the_compared_figure_is_the_cost_in_yardsticks() -> None:
    slow_machine, fast_machine = Figure(30.0, 3.0), Figure(10.0, 1.0)
    assert Line("match", slow_machine, fast_machine).change == 1.0
    assert fast_machine.rate == 100_000


@pytest.mark.parametrize(("cost", "slower"), [(5.0, False), (10.0, False), (12.0, False), (12.01, True), (100.0, True)])
def test_above_120_percent_is_an_alert(cost: float, slower: bool) -> None:
    (line,) = history.compare(entry(match=cost), [entry(match=10.0)])
    assert line.is_slower is slower


def test_the_last_entry_counts_whatever_the_order_and_not_the_best() -> None:
    old, last = entry("2026-11-14T00:00:00Z", match=1.0), entry("2026-11-15T00:00:00Z", match=10.0)
    for earlier in ([old, last], [last, old]):
        (line,) = history.compare(entry(match=11.0), earlier)
        assert line.before == last.figures["match"]


def test_a_bar_that_the_last_run_left_out_is_compared_with_an_older_one() -> None:
    older, last = entry("2026-11-14T00:00:00Z", node=7.0), entry("2026-11-15T00:00:00Z", match=10.0)
    lines = history.compare(entry(match=10.0, node=14.0), [older, last])
    assert [(line.bar, line.change) for line in lines] == [("match", 1.0), ("node", 2.0)]


def test_a_bar_without_a_past_is_no_alert() -> None:
    (line,) = history.compare(entry(match=1000.0), [])
    assert line.change is None
    assert not line.is_slower
    assert "new" in history.table([line])


def test_an_alert_is_a_line_in_capitals() -> None:
    lines = history.compare(entry(match=15.0, node=1.0), [entry(match=10.0, node=1.0)])
    alerts = [line for line in history.table(lines).splitlines() if line == line.upper()]
    assert alerts == ["SLOWER: MATCH COSTS 150% OF THE EARLIER ENTRY, AND 120% IS THE LIMIT"]


def test_entries_come_back_oldest_first(tmp_path: Path) -> None:
    new, old = entry("2026-11-16T00:00:00Z", dirty=True, match=1.0), entry("2026-11-15T00:00:00Z", node=2.0)
    paths = [history.save(one, tmp_path / "history") for one in (new, old)]
    assert [path.name for path in paths] == ["2026-11-16-abc1234-dirty.json", "2026-11-15-abc1234.json"]
    assert history.load(tmp_path / "history") == [old, new]
    assert history.load(tmp_path / "nowhere") == []


def test_a_figure_is_the_best_round_after_one_to_warm_up() -> None:
    costs = iter([1.0, 9.0, 7.0, 8.0])

    @contextlib.contextmanager
    def bar() -> Iterator[measure.Round]:
        yield lambda: next(costs)

    found = measure.figure(bar, rounds=3)
    assert (found.cost, found.costs) == (7.0, [9.0, 7.0, 8.0])
    assert found.yardstick > 0


def test_a_slower_run_writes_no_entry_unless_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter([10.0, 11.0, 20.0, 20.0, 20.0])

    def measured(bars: list[str], rounds: int) -> Entry:
        assert (bars, rounds) == (["match"], 3)
        cost = next(runs)
        return entry(f"2026-11-{int(cost)}T00:00:00Z", match=cost)

    for name, value in {"FOLDER": tmp_path, "ROOT": tmp_path, "measured": measured}.items():
        monkeypatch.setattr(command, name, value)
    options = ["--only", "match", "--rounds", "3"]
    assert command.main([*options]) == 0
    assert command.main([*options, "--dry-run"]) == 0
    assert len(history.load(tmp_path)) == 1
    assert command.main(options) == 1
    assert len(history.load(tmp_path)) == 1
    assert command.main([*options, "--accept"]) == 1
    assert len(history.load(tmp_path)) == 2
    assert command.main(options) == 0, "an accepted entry is what later runs are held against"


def test_a_run_on_a_busy_machine_writes_no_entry_unless_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    busy = entry(load=1.5, match=10.0)
    for name, value in {"FOLDER": tmp_path, "ROOT": tmp_path, "measured": lambda bars, rounds: busy}.items():
        monkeypatch.setattr(command, name, value)
    assert command.main([]) == 0
    assert "busy" in capsys.readouterr().out
    assert history.load(tmp_path) == []
    assert command.main(["--accept"]) == 0
    assert history.load(tmp_path) == [busy]


def test_an_unknown_bar_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--only", "macth"])
    assert "there is no bar macth" in capsys.readouterr().err
