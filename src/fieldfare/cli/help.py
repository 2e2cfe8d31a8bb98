"""The help text of a command, from its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def help_of(command: Callable[..., object]) -> str:
    """Return the docstring of a command as help text; the lines of its examples are not re-wrapped."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(f"\b\n{text}" if text.startswith("Examples:") else text for text in paragraphs)
