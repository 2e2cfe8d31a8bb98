"""The experiments on forwarding by prefix, by name and in order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fieldfare_lab.prefix import hops, layout, network, queries, sizes
from fieldfare_lab.results import Result, Settings

EXPERIMENTS: Final[dict[str, Callable[[Settings], Result]]] = {
    "X1": sizes.trees,
    "X2": network.growing,
    "X3": network.distributions,
    "X4": queries.queries,
    "X5": layout.layouts,
    "X6": network.staleness,
    "X7": hops.hops,
}
