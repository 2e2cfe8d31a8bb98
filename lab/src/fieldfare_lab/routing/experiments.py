"""The literature's claims about routing strategies, run again in simulated networks: all experiments by name.

Messages and table entries are counted; no clock is read.
"""

from __future__ import annotations

from collections.abc import Callable

from fieldfare_lab.results import Result, Settings
from fieldfare_lab.routing import event_traffic, overlays, table_growth

EXPERIMENTS: dict[str, Callable[[Settings], Result]] = {
    "R1": table_growth.growth,
    "R2": table_growth.churn,
    "R3": table_growth.locality,
    "R4": event_traffic.selectivity,
    "R5": event_traffic.saturation,
    "R6": overlays.hierarchy,
    "R7": table_growth.advertisements,
    "R8": overlays.brokers,
    "R9": overlays.rendezvous,
}
