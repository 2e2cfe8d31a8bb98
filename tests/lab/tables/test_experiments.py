"""The experiments in small: they run, judge what does not depend on size, and print. Their figures come from the lab."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from rich.console import Console

from fieldfare_lab import report
from fieldfare_lab.results import Claim, Curves, Result, Settings, curves_of
from fieldfare_lab.tables import scale
from fieldfare_lab.tables.experiments import EXPERIMENTS
from fieldfare_lab.tables.workload import Workload, operator

SMALL = Settings(replications=1, scale=0.06, clock=itertools.count().__next__)
ALWAYS = (
    "same roots", "same entries", "send the same filters", "no test at all", "no matching event is lost",
    "the exported set means the roots", "always fewer than naive", "the same merged roots",
)  # fmt: skip
"""claims that hold for any number of filters"""


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_run(name: str) -> None:
    result = EXPERIMENTS[name](SMALL)
    assert result.curves
    assert result.claims
    for claim in result.claims:
        if any(words in claim.text for words in ALWAYS):
            assert claim.holds, claim
    console = Console(width=200, record=True)
    console.print(report.shown(result))
    printed = console.export_text()
    assert all(claim.measured[:20] in printed for claim in result.claims)
    page = report.markdown([result], "fieldfare lab tables")
    assert all(claim.text in page for claim in result.claims)
    assert msgspec.json.decode(report.as_json([result]))[0]["name"] == result.name


def test_scaling_stops_at_the_budget() -> None:
    result = scale.scaling(SMALL, (20, 40), budget=10**9)
    assert all(None not in line for curves in result.curves for line in curves.lines.values())
    assert all(claim.holds for claim in result.claims if "same roots" in claim.text)
    nobody = scale.scaling(SMALL, (20, 40), budget=0)
    assert all(set(line) == {None} for curves in nobody.curves for line in curves.lines.values())


def test_a_claim_that_fails_says_so() -> None:
    result = Result("E0", "nothing", "no set-up", (), (Claim("pigs fly", False, "0 of 3"),))
    assert "| **does not hold** | pigs fly | 0 of 3 |" in report.markdown([result], "fieldfare lab tables")


def test_curves_are_means() -> None:
    rows = [{"n": n, "who": who, "cost": cost} for n, who, cost in ((1, "a", 2), (1, "a", 4), (2, "a", 5), (2, "b", 1))]
    assert curves_of(rows, title="t", x="n", line="who", value="cost") == Curves(
        "t", "n", (1, 2), {"a": (3, 5), "b": (None, 1)}
    )


def test_the_workload_is_the_same_for_the_same_seed() -> None:
    one, other = (Workload(7, (1, 3), operator) for _ in range(2))
    assert one.filters(50) == other.filters(50)
    assert one.events(5) == other.events(5)
    assert Workload(8, (1, 3), operator).filters(50) != Workload(7, (1, 3), operator).filters(50)
