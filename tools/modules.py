"""Write the list of modules in docs/architecture.md: `python -m tools.modules`.

The line of a module is the first sentence of its docstring. A test compares the page with `listing()`, so that a new
module without a line is noticed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "architecture.md"
MARK: Final = "<!-- modules -->\n"
SOURCES: Final = (ROOT / "src" / "fieldfare", ROOT / "lab" / "src" / "fieldfare_lab")


def sentence(path: Path) -> str:
    """Return the first sentence of a module's docstring."""
    text = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0]
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(text.split()))[0].replace("|", "\\|")


def packages(source: Path) -> Iterator[Path]:
    """Yield the package in a folder and all packages below it, in the order of their names."""
    yield source
    for folder in sorted(source.iterdir()):
        if (folder / "__init__.py").exists():
            yield from packages(folder)


def listing() -> str:
    """Return the list of all packages and modules as Markdown."""
    lines: list[str] = []
    for source in SOURCES:
        for package in packages(source):
            lines += [f"### `{package.relative_to(source.parent)}/`", "", sentence(package / "__init__.py"), ""]
            modules = [path for path in sorted(package.glob("*.py")) if not path.stem.startswith("__")]
            if modules:
                lines += [
                    "| module | |",
                    "|---|---|",
                    *(f"| `{path.stem}` | {sentence(path)} |" for path in modules),
                    "",
                ]
    return "\n".join(lines)


def main() -> None:
    """Replace the list in the page."""
    before, mark, _ = PAGE.read_text().partition(MARK)
    PAGE.write_text(before + mark + "\n" + listing())


if __name__ == "__main__":
    main()
