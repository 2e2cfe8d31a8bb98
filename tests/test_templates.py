"""The forms for issues and the hooks of git are what GitHub and pre-commit can read, and name commands that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
FORMS = sorted(path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
KINDS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


def read(path: Path) -> dict[str, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_a_form_has_what_github_wants(path: Path) -> None:
    form = read(path)
    assert form["name"]
    assert form["description"]
    assert {part["type"] for part in form["body"]} <= KINDS
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(set(ids)) == len(ids)
    assert all(part["attributes"]["label"] for part in form["body"] if part["type"] != "markdown")


def test_hooks_call_the_locked_tools_that_make_lint_calls() -> None:
    (source,) = read(ROOT / ".pre-commit-config.yaml")["repos"]
    assert source["repo"] == "local"
    commands = [hook["entry"].split() for hook in source["hooks"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    lint = set(re.findall(r"\$\(BIN\)/(\S+)", makefile.partition("\nlint:")[2].partition("\n\n")[0]))
    assert {command[0].removeprefix(".venv/bin/") for command in commands} == lint
