"""The experiments of the thesis on routing tables, by name and in order."""

from __future__ import annotations

from collections.abc import Callable

from fieldfare_lab.results import Result, Settings
from fieldfare_lab.tables import forwards, mergers, profile_queries, structures

EXPERIMENTS: dict[str, Callable[[Settings], Result]] = {
    "E1": structures.local_clients,
    "E2": structures.dimensions,
    "E3": structures.interfaces,
    "E4": structures.neighbours,
    "E6": forwards.without_clients,
    "E7": forwards.with_clients,
    "E8": structures.matching,
    "E13": profile_queries.one_side,
    "E15": profile_queries.both_sides,
    "E16": profile_queries.preloaded,
    "E18": mergers.one_shot,
    "E19": mergers.one_shot_interfaces,
    "E20": mergers.imperfect,
    "E21": mergers.dynamic,
}
"""E4 runs E5 too, E13 runs E14, E16 runs E17"""
