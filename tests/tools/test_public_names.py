"""The page of public names is what `__all__` of the packages says."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tools import public_names


def test_the_page_lists_every_public_name() -> None:
    assert public_names.PAGE.read_text() == public_names.page(), "run: python -m tools.public_names"


def test_every_public_name_has_a_sentence() -> None:
    assert not [line for line in public_names.page().splitlines() if line.endswith("|  |")]


@pytest.mark.parametrize(
    ("package", "name"),
    [
        ("fieldfare.client", "connect"),
        ("fieldfare.matching", "Index"),
        ("fieldfare.routing", "Broker"),
        ("fieldfare.simulation", "Network"),
    ],
)
def test_the_obvious_imports_work_in_a_fresh_process(package: str, name: str) -> None:
    subprocess.run([sys.executable, "-c", f"from {package} import {name}"], check=True, timeout=300)
