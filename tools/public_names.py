"""Write the page of public names, docs/reference/public-names.md: `python -m tools.public_names`.

A public name is a name in `__all__` of a package that users import. The line of a name is the first sentence of its
docstring. A test compares the page with `page()`.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "public-names.md"
PACKAGES: Final = (
    "fieldfare",
    "fieldfare.events",
    "fieldfare.filters",
    "fieldfare.matching",
    "fieldfare.tables",
    "fieldfare.profiles",
    "fieldfare.routing",
    "fieldfare.mobility",
    "fieldfare.simulation",
    "fieldfare.client",
    "fieldfare.pipeline",
    "fieldfare.testing",
)
HEAD: Final = """# Public names

A program imports these names, from these packages. Every other name is internal and may change without notice.
`python -m tools.public_names` writes this page from `__all__` of each package; a test compares both.

```python
>>> from fieldfare.matching import Index
>>> from fieldfare.routing import Broker
>>> from fieldfare.simulation import Network
>>> from fieldfare.client import connect
```
"""


def sentence(value: object) -> str:
    """Return the first sentence of the docstring of a class, a function or a module; "a constant" for other values."""
    if not (inspect.isclass(value) or inspect.isroutine(value) or inspect.ismodule(value)):
        return f"a constant, {type(value).__name__}"
    text = (inspect.getdoc(value) or "").partition("\n\n")[0]
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", " ".join(text.split()))[0].replace("|", "\\|")


def page() -> str:
    """Return the page as Markdown."""
    lines = [HEAD]
    for package in PACKAGES:
        module = import_module(package)
        lines += [f"## `{package}`", "", sentence(module), "", "| name | |", "|---|---|"]
        lines += [f"| `{name}` | {sentence(getattr(module, name))} |" for name in sorted(module.__all__)]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
