"""Sinks: the places where a pipeline writes the tables of its micro-batches.

A `[[sink]]` of a pipeline's file has a `kind`. Fieldfare brings the kinds in `KINDS`. With `kind =
"package.module:make"` a user names a function that takes the `SinkSettings` and returns a `Sink`; see `interface`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Final

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.options import OptionError, Options
from fieldfare.pipeline.sinks.interface import Sink, SinkSettings
from fieldfare.toml import similar

__all__ = ["KINDS", "Batch", "OptionError", "Options", "Sink", "SinkSettings", "check_kind", "make"]

Make = Callable[[SinkSettings], Sink]
KINDS: Final[Mapping[str, str]] = {
    "lake": "fieldfare.pipeline.sinks.table:make",
    "parquet": "fieldfare.pipeline.sinks.parquet:make",
    "subscribers": "fieldfare.pipeline.sinks.folders:make",
    "node": "fieldfare.pipeline.sinks.node:make",
    "webhooks": "fieldfare.pipeline.sinks.webhooks:make",
    "kafka": "fieldfare.pipeline.sinks.kafka:make",
}
"""the function that makes a sink of each kind; the module, which needs Spark, is imported at the first use"""


def check_kind(kind: str) -> None:
    """Raise OptionError for a kind that neither Fieldfare brings nor has the form `package.module:make`.

    >>> check_kind("lak")
    Traceback (most recent call last):
        ...
    fieldfare.pipeline.options.OptionError: there is no sink of the kind 'lak'; did you mean 'lake'? (choices: lake,
    parquet, subscribers, node, webhooks, kafka, or your own as package.module:make)
    """
    if kind not in KINDS and ":" not in kind:
        kinds = ", ".join(KINDS)
        raise OptionError(
            f"there is no sink of the kind {kind!r}{similar(kind, KINDS)} (choices: {kinds}, or your own as"
            " package.module:make)"
        )


def make(settings: SinkSettings) -> Sink:
    """Make a sink of any kind; OptionError says which option, module or function is wrong or missing."""
    check_kind(settings.kind)
    module, _, function = KINDS.get(settings.kind, settings.kind).partition(":")
    try:
        maker: Make = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        raise OptionError(f"{settings.kind} cannot be loaded: there is no module {error.name}") from None
    except AttributeError:
        raise OptionError(f"{settings.kind} cannot be loaded: {module} has no function {function}") from None
    return maker(settings)
