"""The benchmark, tiny: workloads stay what they are, contenders agree, a wrong one is found out, reports render."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from fieldfare.cli import app
from fieldfare_lab.bench import (
    costs,
    engines,
    joins,
    measurement,
    realistic_workloads,
    reference_workloads,
    report,
    rules,
    workloads,
)
from fieldfare_lab.bench.parametric_workload import Sweep
from fieldfare_lab.bench.plots import curves, plot

NAMES = (*workloads.ABOUT, "sweep:dimensions=8,attributes=6,predicates=2,equality=0.5,value_skew=1,cardinality=20")
CONTENDERS = engines.contenders()
INSTALLED = [one for one in CONTENDERS.values() if engines.missing(one) is None and not one.patient]


@pytest.mark.parametrize("name", NAMES)
def test_all_contenders_agree(name: str) -> None:
    made = workloads.generate(name, 25, 15)
    rows = measurement.measure(made, INSTALLED, 1)
    assert {row.status for row in rows} <= {"ok", "skipped"}, [(row.contender, row.reason) for row in rows]
    assert [row.contender for row in rows] == [one.name for one in INSTALLED]
    done = [row for row in rows if row.status == "ok"]
    assert len(done) >= 8
    assert all(len(row.seconds) == 1 and row.rate and row.matches is not None for row in done)


@pytest.mark.parametrize("name", NAMES)
def test_workloads_are_deterministic(name: str) -> None:
    first, again = workloads.generate(name, 50, 30), workloads.generate(name, 50, 30)
    assert (first.filters, first.events, first.rules) == (again.filters, again.events, again.rules)
    assert (len(first.filters), len(first.events), len(first.seen)) == (50, 30, workloads.SEEN)
    assert workloads.generate(name, 50, 30, seed=1).filters != first.filters


@pytest.mark.parametrize("name", ["eq", "stock", "begen", "w1", "w2", "w3", "sweep"])
def test_texts_mean_what_the_rules_mean(name: str) -> None:
    made = workloads.generate(name, 200, 20)
    assert made.rules is not None
    for rule, wanted in zip(made.rules, made.parsed, strict=True):
        assert [wanted.matches(event) for event in made.events] == [rules.holds(rule, event) for event in made.events]


BATCHES = ("batch", "batch-dict", "json-batch")


@pytest.mark.parametrize(
    ("name", "contenders"),
    [
        ("eq", ("numpy-vector", *BATCHES)),
        ("stock", ("numpy-vector", *BATCHES)),
        ("begen", ("numpy-vector", "single")),
        pytest.param("begen", BATCHES, marks=pytest.mark.long),  # batches with 400 columns take seconds to make
    ],
)
def test_the_known_totals_are_found(name: str, contenders: tuple[str, ...]) -> None:
    made = workloads.generate(name, 1000, 20_000)
    found = {one: CONTENDERS[one].prepare(made)(made.events)() for one in contenders}
    assert found == dict.fromkeys(contenders, reference_workloads.EXPECTED[name, 1000])


def test_shared_workloads_can_be_absent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FIELDFARE_SHARED", str(tmp_path))
    workloads.shared.cache_clear()
    try:
        assert workloads.shared() is None
        assert workloads.generate("eq", 3, 3).rules == reference_workloads.generate("eq", 3, 3)[0]
    finally:
        workloads.shared.cache_clear()


def test_lifelike_filters_are_what_they_claim() -> None:
    for name, words in (("ads", (" IN (", " OR ", "NOT (", "floor")), ("alerts", ("CONTAINS", "ENDS WITH", "LIKE"))):
        texts = "\n".join(workloads.generate(name, 100, 1).filters)
        assert all(word in texts for word in words)
    assert realistic_workloads.COUNTRIES


@pytest.mark.parametrize("options", ["colour=1", "predicates=99", "selectivity=0", "dimensions=x"])
def test_a_wrong_parameter_is_refused(options: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        workloads.generate(f"sweep:{options}", 1, 1)


def test_parameters_have_an_effect() -> None:
    made, _ = Sweep(equality=1, predicates=3).make(_rng(), 20, 1)
    assert all(len(rule) == 3 and rules.operators([rule]) == {"="} for rule in made)


def test_a_wrong_contender_is_found_out() -> None:
    made = workloads.generate("stock", 50, 50)
    liar = dataclasses.replace(CONTENDERS["counting"], name="liar", prepare=_always(10**6))
    lazy = dataclasses.replace(CONTENDERS["counting"], name="broken", prepare=_broken)
    *right, lied, broke = measurement.measure(made, [CONTENDERS["brute"], CONTENDERS["counting"], liar, lazy], 1)
    assert [row.status for row in right] == ["ok", "ok"]
    assert (lied.status, lied.seconds, broke.status, broke.reason) == ("WRONG", [], "failed", "OSError: out of ink")


def test_all_being_wrong_alike_is_found_out() -> None:
    made = workloads.generate("stock", 50, 50)
    liars = [dataclasses.replace(CONTENDERS["brute"], name=name, prepare=_always(10**6)) for name in "ab"]
    assert {row.status for row in measurement.measure(made, liars, 1)} == {"WRONG"}


def test_slow_contenders_get_fewer_events() -> None:
    made = workloads.generate("eq", 100, 100)
    slow = dataclasses.replace(CONTENDERS["brute"], pairs=lambda _: 1000)
    assert engines.events_for(slow, made) == 10
    assert engines.events_for(CONTENDERS["batch"], made) == 100


def test_both_plans_of_joins_occur() -> None:
    plans = {name: joins.plan(workloads.generate(name, 30, 10)) for name in ("eq", "stock", "w1", "begen")}
    assert [plan.counting for plan in plans.values()] == [False, False, False, True]
    assert [plan.hashed for plan in plans.values()] == [True, True, False, False]


def test_the_report_renders() -> None:
    rows = measurement.measure(workloads.generate("ads", 20, 20), list(CONTENDERS.values()), 1)
    rows.append(measurement.Row("ads", 20, "liar", "", status="WRONG", reason="5 matches"))
    figures = [costs.Cost("add", 12.5, "µs"), costs.Cost("snapshot open", None, "ms", "not yet")]
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(report.report(rows, figures, "batch"))
    text = console.export_text()
    assert re.search(r"batch +│ +[\d,]+ │", text)
    assert "WRONG: 5 matches" in text
    assert "only plain conjunctions" in text
    assert "12.5" in text
    read = json.loads(report.as_json(rows, figures))
    assert read["rows"][0]["events_per_second"] > 0
    assert [one["name"] for one in read["costs"]] == ["add", "snapshot open"]


SIZES = [measurement.Row("eq", size, "batch", "", events=10, seconds=[size / 1e6]) for size in (10, 100)]


def test_curves_have_a_point_for_each_size() -> None:
    points = curves(SIZES)["eq"]["batch"]
    assert [size for size, _ in points] == [10, 100]
    assert [rate for _, rate in points] == pytest.approx([1e6, 1e5])


@pytest.mark.needs("matplotlib")
def test_plots_are_drawn(tmp_path: Path) -> None:
    assert [file.read_text(encoding="utf-8")[:5] for file in plot(SIZES, tmp_path)] == ["<?xml"]


def test_costs_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "START", "print(0.25)")
    found = list(costs.costs("eq", 300))
    assert [cost.name for cost in found][-2:] == ["first start", "later start"]
    assert {cost.name for cost in found} >= {"bulk load", "add", "remove", "memory", "snapshot open"}
    assert all(cost.value is None or cost.value > 0 for cost in found)


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    tiny = ["--filters", "30,60", "--events", "20", "--rounds", "1", "--engines", "batch,counting", "--no-costs"]
    done = CliRunner().invoke(app, ["bench", "match", "-w", "eq", "-w", "ads", *tiny, "--json", str(file)])
    assert done.exit_code == 0, done.output
    assert "ads, 60 filters" in done.output
    assert len(json.loads(file.read_text(encoding="utf-8"))["rows"]) == 8


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-w", "nothing"], "no workload 'nothing'"),
        (["--filters", "many"], "numbers with commas"),
        (["--engines", "fastest"], "no contender 'fastest'"),
    ],
)
def test_mistakes_are_explained(options: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["bench", "match", "--quick", *options])
    assert done.exit_code == 2
    assert said in done.output


def test_the_list_names_everything() -> None:
    done = CliRunner().invoke(app, ["bench", "match", "--list"], env={"COLUMNS": "120"})
    assert all(name in done.output for name in (*workloads.ABOUT, *CONTENDERS))


def _always(number: int) -> Callable[[workloads.Workload], engines.Feed]:
    return lambda _: lambda _: lambda: number


def _broken(_: workloads.Workload) -> engines.Feed:
    raise OSError("out of ink")


def _rng() -> Any:
    return np.random.default_rng(1)
