"""A node starts, and serves a first subscription, without the packages that only some users need."""

from __future__ import annotations

import subprocess
import sys

import pytest

START = """
import sys, fieldfare.cli.commands.up, fieldfare.node.server
from fieldfare import Event, parse
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
broker = Broker("oslo")
broker.receive(m.Connect(), "rome", 0.0)
broker.receive(m.Subscribe("cheap", parse("price < 10")), "ana", 0.0)
assert broker.receive(m.Publish(Event({"price": 3})), "bob", 1.0)
print(*sys.modules)
"""
HEAVY = (
    "fieldfare.tables.structures.poset",
    "fieldfare.tables.structures.forest",
    "fieldfare.tables.structures.forest_tables",
    "fieldfare.tables.structures.naive",
    "fieldfare.matching.classic.bdd",
    "fieldfare.routing.overlays",
    "fieldfare.profiles",
    "fieldfare.mobility",
    "fieldfare.simulation",
    "fieldfare_lab",
    "matplotlib",
    "numba",
    "pyspark",
)


@pytest.fixture(scope="module")
def imported() -> set[str]:
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", HEAVY)
def test_a_node_starts_without(name: str, imported: set[str]) -> None:
    assert not [module for module in imported if module == name or module.startswith(f"{name}.")]


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("routing", "Broker"),
        ("tables", "IndexedTable"),
        ("profiles", "DoubleForest"),
        ("mobility", "MobileBroker"),
    ],
)
def test_the_obvious_import_works_and_loads_only_what_it_names(package: str, name: str) -> None:
    script = f"import sys, fieldfare.{package}; print(*sys.modules); from fieldfare.{package} import {name}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not [one for one in done.stdout.split() if one.startswith(f"fieldfare.{package}.")]
