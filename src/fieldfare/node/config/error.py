"""The error of a wrong setting."""

from __future__ import annotations

from fieldfare.toml import where


class ConfigError(ValueError):
    """A wrong setting of a node; the text has the file and line, variable or flag, the key, and the allowed values."""

    def __init__(self, source: str, key: str, problem: object, line: int | None = None) -> None:
        self.source = source
        self.key = key
        self.problem = str(problem)
        named = "" if source == f"--{key}" else key  # a flag has the name of its key
        super().__init__(": ".join(part for part in (where(source, line), named, self.problem) if part))
