"""`fieldfare simulate`: what it prints and writes, and that the page shows what happened."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from fieldfare.cli import app
from fieldfare.cli.pages import network
from fieldfare.cli.pages.network import facts, layout, page, warning
from fieldfare.simulation import trace as records
from fieldfare.simulation import trace_files
from fieldfare.simulation.checker import Violation
from fieldfare.simulation.scenario import Brokers, Clients, Scenario, load, parse, run
from fieldfare.simulation.scenario import Result as Run
from fieldfare.simulation.topologies import complete, line
from fieldfare.simulation.workloads import read

SCENARIOS = sorted((Path(__file__).parents[3] / "examples" / "scenarios").glob("*.toml"))
SMALL = """
seed = 4
[topology]
kind = "line"
brokers = 4
[workload]
subscribers = 6
subscriptions = 12
publishers = 2
events = 60
lifetime = 2.0
"""
FAULTS = """
[[faults]]
time = 1.2
do = "crash"
broker = "b2"
[[faults]]
time = 1.4
do = "restart"
broker = "b2"
"""


def simulate(*arguments: str | Path, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["simulate", *map(str, arguments)], input=given)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL + FAULTS, "utf-8")
    return path


def test_a_summary(file: Path) -> None:
    result = simulate(file)
    assert result.exit_code == 0, result.output
    first, *rows = result.stdout.splitlines()
    assert first.startswith("4 brokers · 3 links · covering · ")
    names = [re.split(r"\s{2,}", row.strip())[0] for row in rows]
    assert names[:3] == ["events", "deliveries", "messages"]
    assert re.search(r"^violations +0$", result.stdout, re.MULTILINE)


def test_it_says_how_much_was_due_and_judged(file: Path, tmp_path: Path) -> None:
    out = simulate(file, "--out", tmp_path / "run").stdout
    due, judged = (
        int(re.search(rf"^{words} +([\d,]+)$", out, re.MULTILINE)[1].replace(",", ""))  # type: ignore[index]
        for words in ("deliveries due", "… of them judged")
    )
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert due > judged > 0
    assert (summary["figures"]["due"], summary["figures"]["judged"], summary["warning"]) == (due, judged, None)
    assert "<dt>… of them judged</dt>" in (tmp_path / "run" / "network.html").read_text("utf-8")
    assert "JUDGED" not in out


def test_a_run_in_which_nothing_was_judged_says_so(done: Run, tmp_path: Path) -> None:
    out = simulate("-", "--out", tmp_path / "run", given=SMALL.replace("events = 60", "events = 0")).stdout
    assert "NOTHING WAS JUDGED: no client had subscribed" in out
    assert "no client had subscribed" in json.loads((tmp_path / "run" / "summary.json").read_text())["warning"]
    assert "NOTHING WAS JUDGED" in (tmp_path / "run" / "network.html").read_text("utf-8")
    restless = dataclasses.replace(done, figures=msgspec.structs.replace(done.figures, due=12, judged=0))
    assert warning(restless).startswith("NOTHING WAS JUDGED: 12 deliveries were due, but ")
    assert warning(done) == ""


def test_files(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "run"
    assert simulate(file, "--out", out).exit_code == 0
    summary = json.loads((out / "summary.json").read_text())
    trace = trace_files.read(str(out / "trace.parquet"))
    figures = summary["figures"]
    assert figures["deliveries"] == sum(isinstance(record, records.Delivered) for record in trace) > 0
    assert figures["event_messages"] == sum(isinstance(record, records.Forwarded) for record in trace) > 0
    assert sum(broker["delivered"] for broker in summary["brokers"].values()) == figures["deliveries"]
    assert sum(link["events"] for link in summary["links"]) == figures["event_messages"]
    assert trace == run(load(file)).trace
    assert (out / "network.html").read_text("utf-8").startswith("<!doctype html>")


def test_without_a_page_and_without_checks(file: Path, tmp_path: Path) -> None:
    result = simulate(file, "--out", tmp_path / "run", "--no-page", "--no-check")
    assert re.search(r"^violations +not checked$", result.stdout, re.MULTILINE)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["summary.json", "trace.parquet"]


def test_strategy_and_seed_instead_of_the_scenarios(file: Path) -> None:
    flooded = simulate(file, "--strategy", "flooding")
    assert "· flooding ·" in flooded.stdout
    assert simulate(file, "--seed", "5").stdout != simulate(file).stdout == simulate(file, "--seed", "4").stdout


def test_a_saved_workload_gives_the_same_run(file: Path, tmp_path: Path) -> None:
    first = simulate(file, "--save-workload", tmp_path / "clients.parquet")
    assert read(str(tmp_path / "clients.parquet"))
    again = tmp_path / "again.toml"
    again.write_text(
        f"seed = 4\n[topology]\nkind = 'line'\nbrokers = 4\n[workload]\nfile = 'clients.parquet'\n{FAULTS}"
    )
    assert simulate(again).stdout == first.stdout


@pytest.mark.parametrize("file", SCENARIOS, ids=lambda file: file.name)
def test_the_scenarios_in_the_examples_can_be_run(file: Path) -> None:
    text = re.sub(r"(?m)^events = \d+", "events = 100", file.read_text("utf-8"))
    assert run(parse(text)).violations == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("strategy = 'clever'", "strategy: there is no strategy 'clever'"),
        ("[topology]\nkind = 'line'\nbrokers = 'four'", "line 3: topology.brokers: expected an integer, got a string"),
        ("[links]\nloss = 2.0", "line 2: links.loss: "),
        ("[[faults]]\ntime = 1\ndo = 'explode'", "line 3: faults[0].do: 'explode' is not valid (choices: "),
        ("topology = [", "this is not TOML"),
        ("[workload]\nfile = 'none.parquet'", "workload.file: "),
    ],
)
def test_errors_name_the_place(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    result = simulate(path)
    assert result.exit_code == 2
    assert f"error: {path}: {problem}" in result.stderr


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert simulate(tmp_path / "none.toml").exit_code == 2
    assert simulate().exit_code == 2


def test_violations_are_shown_and_end_with_1(file: Path, tmp_path: Path) -> None:
    file.write_text(SMALL + "[links]\nloss = 0.3\nreliable = false\n")
    result = simulate(file)
    assert result.exit_code == 1
    assert "s: liveness: to " in result.stdout


# The page


@pytest.fixture(scope="module")
def done() -> Run:
    return run(parse(SMALL + FAULTS))


def data_of(text: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_the_page_needs_nothing_from_elsewhere(done: Run) -> None:
    text = page(done, "a <b>title</b>")
    assert not re.search(r"(src|href)=", text)
    assert set(re.findall(r"https?://[^\"\s]+", text)) <= {"http://www.w3.org/2000/svg"}
    assert "<b>" not in text
    assert "default-src 'none'" in text.replace("&#x27;", "'")


def test_the_page_holds_the_run(done: Run) -> None:
    data = data_of(page(done, "t"))
    assert len(data["messages"]) == sum(isinstance(r, records.Forwarded | records.Told) for r in done.trace)
    counts = {name: sum(sum(one[place]) for one in data["counts"]) for place, name in enumerate(data["counters"])}
    assert counts["events published"] == done.figures.events
    assert counts["events sent"] == counts["events received"] == done.figures.event_messages
    assert counts["deliveries"] == done.figures.deliveries
    assert [change[1] for change in data["changes"] if change[1] in {"crashed", "restarted"}] == [
        "crashed",
        "restarted",
    ]


def test_names_cannot_break_out_of_the_page() -> None:
    evil = "</script><script>alert(1)</script>"
    text = f"[topology]\nkind = 'edges'\nedges = [['{evil}', 'b\"&']]\n[workload]\nevents = 5\nsubscriptions = 3"
    made = page(run(parse(text)), evil)
    assert made.count("<script") == 2
    assert data_of(made)["brokers"][0]["name"] == evil


def test_of_many_messages_some_are_shown_and_all_counted(done: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "MOST_MESSAGES", 50)
    monkeypatch.setattr(network, "MOST_ASKED", 5)
    text = page(done, "t")
    data = data_of(text)
    assert 25 <= len(data["messages"]) <= 50
    assert f"One of {data['every']} messages is shown; all are counted." in text
    assert len(data["asked"]) == 5
    assert "later subscriptions are left out" in text
    assert sum(sum(one[1]) for one in data["counts"]) == done.figures.event_messages


@pytest.mark.parametrize("topology", [line(1), line(2), complete(6)], ids=["one", "two", "not planar"])
def test_brokers_lie_apart_within_the_picture(topology: Any) -> None:
    places = layout(topology)
    assert len(set(places)) == len(topology.brokers)
    assert all(0 <= x <= 1000 and 0 <= y <= 640 for x, y in places)


def test_without_networkx_there_is_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(network, "import_module", missing)
    assert len(set(layout(complete(6)))) == 6


@pytest.mark.needs("Node.js")
def test_the_script_shows_what_was_so_at_a_time(done: Run) -> None:
    wrong = Run(**{name: getattr(done, name) for name in Run.__slots__} | {"violations": [Violation("safety", 3, "x")]})
    places = layout(done.topology)
    data = facts(wrong, places)
    folder = resources.files("fieldfare") / "data" / "network"
    scripts = "".join((folder / name).read_text("utf-8") for name in ("timeline.js", "page.js"))
    times = [0.0, 0.31, 1.0, 1.25, 1.3, 1.5, done.seconds]
    given = json.dumps({"data": data, "html": page(wrong, "a run"), "scripts": scripts, "times": times, "choose": 2})
    ran = subprocess.run(
        ["node", Path(__file__).with_name("network_page.mjs")], input=given, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    shown = json.loads(ran.stdout)
    assert (shown["played"], shown["violations"]) == ("0.50 s", 1)
    for time, seen in zip(times, shown["shown"], strict=True):
        down = 1.2 <= time < 1.4
        assert seen["crashed"] == ([2] if down else [])
        assert seen["down"] == ([1, 2] if down else [])
        sent = [m for m in data["messages"] if time - 0.3 < m[0] <= time]
        assert len(seen["messages"]) == len(sent)
        expected = sorted(("tell" if m[3] else "event", *on_the_way(m, places, time)) for m in sent)
        dots = sorted((m["class"], float(m["cx"]), float(m["cy"])) for m in seen["messages"])
        assert [dot[0] for dot in dots] == [place[0] for place in expected]
        assert [x for dot in dots for x in dot[1:]] == pytest.approx([x for dot in expected for x in dot[1:]], abs=0.2)
        last = int(time / data["width"])
        delivered = sum(data["counts"][2][3][: last + 1])
        assert f"deliveries\n{delivered}\n" in seen["chosen"]
        assert f"Clients: {len({one[3] for one in clients_at(data, 2, time)})}" in seen["chosen"]


def on_the_way(message: Any, places: Any, time: float) -> tuple[float, float]:
    (x0, y0), (x1, y1), share = places[message[1]], places[message[2]], (time - message[0]) / 0.3
    return round(x0 + (x1 - x0) * share, 1), round(y0 + (y1 - y0) * share, 1)


def clients_at(data: Any, broker: int, time: float) -> list[Any]:
    return [one for one in data["asked"] if one[2] == broker and one[0] <= time and (one[1] is None or time < one[1])]


def test_links_that_rest_are_marked() -> None:
    """A ring has one link more than its tree."""
    few = Clients(subscribers=2, subscriptions=2, publishers=1, events=3)
    ring = Scenario(strategy="covering+tree", topology=Brokers(kind="ring", brokers=5), workload=few)
    drawn = page(run(ring), "a ring").partition("<aside>")[0]
    assert drawn.count('class="link') == 5
    assert drawn.count('class="link resting"') == 1
