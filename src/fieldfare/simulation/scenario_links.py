"""Parts of a scenario: the links, and the processing time of brokers."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec

from fieldfare.routing.strategies import Strategy
from fieldfare.simulation import links
from fieldfare.simulation import processing_time as processing
from fieldfare.simulation.host import Processing as Seconds
from fieldfare.simulation.workloads import Positive, Share


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file; an unknown key is a mistake."""


class Links(Part, frozen=True):
    """The properties of all links."""

    latency: Annotated[float, msgspec.Meta(ge=0)] = 0.01
    """seconds"""
    spread: Literal["constant", "uniform", "exponential", "lognormal"] = "constant"
    """how seconds differ: by nothing, up to a half, around that mean, around that median"""
    bandwidth: Positive | None = None
    """bytes in a second; None: any number"""
    loss: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0
    duplication: Share = 0.0
    reliable: bool = True
    """whether what is lost is sent again"""
    timeout: Annotated[float, msgspec.Meta(ge=0)] = 0.2
    """seconds until it is"""

    def wire(self) -> links.Wire:
        """Make the wire of all links."""
        spread: dict[str, links.Latency] = {
            "constant": self.latency,
            "uniform": links.uniform(self.latency / 2, self.latency * 3 / 2),
            "exponential": links.exponential(self.latency) if self.latency else 0.0,
            "lognormal": links.lognormal(self.latency) if self.latency else 0.0,
        }
        bandwidth = math.inf if self.bandwidth is None else self.bandwidth
        return links.Wire(spread[self.spread], bandwidth, self.loss, self.duplication, self.reliable, self.timeout)


class Processing(Part, frozen=True):
    """How long brokers work on a message."""

    kind: Literal["none", "constant", "measured"] = "none"
    seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0001
    """on each message, if constant"""

    def make(self, strategy: Strategy) -> Seconds:
        """Make the processing times; `measured` measures now."""
        if self.kind == "measured":
            return processing.measured(processing.calibrate(strategy))
        return self.seconds if self.kind == "constant" else None
