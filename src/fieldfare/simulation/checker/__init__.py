"""The trace checker: whether the specification allows a trace.

Each check is a function of a trace and returns the violations found; a good trace has none. `check` runs all checks.
"""

from __future__ import annotations

from collections.abc import Callable

from fieldfare.routing.strategies import Order
from fieldfare.simulation.checker.channel_checks import channel_order
from fieldfare.simulation.checker.device_checks import check_devices
from fieldfare.simulation.checker.durable_checks import check_durable, durable_safety
from fieldfare.simulation.checker.liveness_checks import liveness, local_liveness
from fieldfare.simulation.checker.order_checks import causal, fifo, promised, total
from fieldfare.simulation.checker.safety_checks import attribution, safety
from fieldfare.simulation.checker.shared_checks import shared
from fieldfare.simulation.checker.violations import Violation
from fieldfare.simulation.tally import Tally
from fieldfare.simulation.trace import Trace

__all__ = [
    "Violation",
    "attribution",
    "causal",
    "channel_order",
    "check",
    "check_devices",
    "check_durable",
    "durable_safety",
    "fifo",
    "liveness",
    "local_liveness",
    "promised",
    "safety",
    "shared",
    "total",
]


def check(
    trace: Trace, *, advertisements: bool = False, order: Order = "causal", tally: Tally | None = None
) -> list[Violation]:
    """Run all checks of a network that promises an order; the tally counts how many deliveries could be judged."""
    checks: list[Callable[[], list[Violation]]] = [
        lambda: safety(trace, advertisements=advertisements),
        lambda: attribution(trace),
        lambda: liveness(trace, advertisements=advertisements, tally=tally),
        lambda: local_liveness(trace, advertisements=advertisements),
        *([lambda: fifo(trace)] if order in ("fifo", "causal") else []),
        *([lambda: causal(trace)] if order == "causal" else []),
    ]
    return sorted((violation for run in checks for violation in run()), key=lambda violation: violation.order)
