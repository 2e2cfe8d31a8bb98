from pathlib import Path

from typer.testing import CliRunner

from fieldfare.cli import app
from fieldfare.filters.distributions import Distributions


def test_the_file_has_what_the_command_shows(tmp_path: Path) -> None:
    events, file = tmp_path / "events.jsonl", tmp_path / "statistics.json"
    events.write_text('{"x": 1}\n{"x": 4, "s": "a"}\nnonsense\n')
    command = ["statistics", str(events), "--to", str(file)]
    stopped = CliRunner().invoke(app, command)
    assert (stopped.exit_code, file.exists()) == (2, False)
    result = CliRunner().invoke(app, [*command, "--errors", "skip"])
    assert result.stdout.splitlines() == [
        "x: number in 2 of 2 events, 1 to 4",
        "s: string in 1 of 2 events, a to a",
    ] or (result.stdout.splitlines() == ["s: string in 1 of 2 events, a to a", "x: number in 2 of 2 events, 1 to 4"])
    assert "1 bad events skipped" in result.stderr
    assert Distributions.read(file.read_bytes()).events == 2


def test_of_many_events_there_is_a_fair_sample(tmp_path: Path) -> None:
    events, file = tmp_path / "events.jsonl", tmp_path / "statistics.json"
    events.write_text("".join(f'{{"x": {number}}}\n' for number in range(1000)))
    assert CliRunner().invoke(app, ["statistics", str(events), "--to", str(file), "--most", "100"]).exit_code == 0
    values = Distributions.read(file.read_bytes()).fields["x"].values
    assert len(values) == 100
    assert 300 < sum(values) / 100 < 700
