"""The parts of a core form a hierarchy: none knows the core, so each can be read, and tried, with the parts below it."""

from __future__ import annotations

import ast
from pathlib import Path

import fieldfare.core

FOLDER = Path(fieldfare.core.__file__).parent
FUNCTIONS_OF_A_CORE = {"claims", "incoming", "inputs", "recovery"}
"""Modules of functions, and of inputs that are called with a core: they hold no state."""


def imports(module: Path) -> set[str]:
    tree = ast.parse(module.read_text())
    return {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


def is_function_of_a_core(name: str) -> bool:
    return name in FUNCTIONS_OF_A_CORE or name.endswith("_inputs")


def test_no_part_knows_the_core() -> None:
    modules = {module.stem: imports(module) for module in FOLDER.glob("*.py") if module.stem != "core"}
    knowing = {name for name, found in modules.items() if "fieldfare.core.core" in found}
    assert {name for name in knowing if not is_function_of_a_core(name)} == set()
