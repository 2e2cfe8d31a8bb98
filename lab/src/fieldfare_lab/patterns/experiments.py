"""The experiments of `fieldfare lab patterns`, by name: the claims of the book's chapter on composite events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fieldfare_lab.patterns.delays import silence, thresholds, wrong
from fieldfare_lab.patterns.placement import bottleneck, locality, policies, reuse
from fieldfare_lab.results import Result, Settings

EXPERIMENTS: Final[dict[str, Callable[[Settings], Result]]] = {
    "R1.1": bottleneck,
    "R1.2": locality,
    "R1.3": reuse,
    "R1.4": policies,
    "R1.5": wrong,
    "R1.5s": silence,
    "R1.6": thresholds,
}
