"""The help text of a command, from its docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def help_of(command: Callable[..., object]) -> str:
    """Give the docstring of a command as help text, with its examples line by line."""
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(f"\b\n{text}" if text.startswith("Examples:") else text for text in paragraphs)
