"""Runs by model, policy and a place on an axis, and words for what they show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple

from fieldfare.mobility.publisher_policies import PublisherPolicy
from fieldfare.routing.strategies import COVERING, with_advertisements
from fieldfare.simulation.processing_time import calibrate
from fieldfare_lab.mobility.city import Case, Outcome, run
from fieldfare_lab.mobility.observed_brokers import COMPLEX, FAST, NONE, Model
from fieldfare_lab.results import Curves, Settings

_PUBLISHERS: Final = (50, 150, 250)
_TABLE: Final = 300
"""about as many filters stand in a table here"""


@lru_cache(maxsize=1)
def measured(clock: Callable[[], float]) -> Model:
    """How long our own brokers work, on this machine."""
    costs = calibrate(with_advertisements(COVERING), (_TABLE,), clock=clock)
    event, tell = costs.event.at(_TABLE), costs.tell.at(_TABLE)
    return Model("measured", event, tell, tell)


class Grid(NamedTuple):
    """Runs by model, policy and place on an axis."""

    x: str
    at: tuple[float, ...]
    models: tuple[Model, ...]
    policies: tuple[PublisherPolicy, ...]
    outcomes: dict[tuple[str, str, float], Outcome]

    def values(self, model: Model, policy: PublisherPolicy, value: Callable[[Outcome], float]) -> list[float]:
        """Along the axis."""
        return [value(self.outcomes[model.name, policy.name, at]) for at in self.at]

    def curves(self, title: str, value: Callable[[Outcome], float]) -> tuple[Curves, ...]:
        """A drawing for each model, with a line for each policy."""
        return tuple(
            Curves(
                f"{title}; {model.name}", self.x, self.at,
                {policy.name: tuple(self.values(model, policy, value)) for policy in self.policies},
            )
            for model in self.models
        )  # fmt: skip


def grid_of(
    settings: Settings,
    x: str,
    at: Iterable[float],
    policies: Iterable[PublisherPolicy],
    change: Callable[[Case, float], Case],
) -> Grid:
    """Run all; a place on the axis changes the case."""
    places, models, policies = tuple(dict.fromkeys(at)), models_of(settings), tuple(policies)
    outcomes = {
        (model.name, policy.name, place): run(change(case_of(settings, policy, model), place))
        for model in models
        for policy in policies
        for place in places
    }
    return Grid(x, places, models, policies, outcomes)


def models_of(settings: Settings) -> tuple[Model, ...]:
    """The three of the literature, and ours."""
    return NONE, FAST, COMPLEX, measured(settings.clock)


def case_of(settings: Settings, policy: PublisherPolicy, model: Model) -> Case:
    """The case that all others are changes of."""
    return Case(
        policy, model, settings.size(50), settings.size(500), length=max(20.0, 45.0 * min(1.0, settings.scale)),
        seed=settings.seed,
    )  # fmt: skip


def by_publishers(settings: Settings, policies: Iterable[PublisherPolicy], every: float | None = None) -> Grid:
    """With more and more publishers."""
    at = (settings.size(number) for number in _PUBLISHERS)

    def change(case: Case, number: float) -> Case:
        length = case.length if every is None else min(30.0, case.length)  # events are many
        return case._replace(publishers=int(number), every=every, length=length)

    return grid_of(settings, "publishers", at, policies, change)


def rate(outcome: Outcome) -> float:
    """Messages a move: runs have different numbers of moves."""
    return outcome.messages / max(1, outcome.moves)


def listed(values: Iterable[float]) -> str:
    """For people."""
    return ", ".join(f"{value:,.3g}" for value in values)


def work(load: dict[str, list[float]]) -> str:
    """The same by model, where there is any."""
    return "; ".join(f"{name} {listed(values)}" for name, values in load.items() if any(values))


def times(values: Sequence[float], others: Sequence[float]) -> float:
    """How many times as much, where it is least."""
    return min(a / b if b else inf for a, b in zip(values, others, strict=True))


def flat(values: Sequence[float], factor: float) -> bool:
    """Whether they differ by a factor at most."""
    return max(values) <= factor * min(values)


def rises(values: Sequence[float]) -> bool:
    """Whether each is more than the one before."""
    return all(a < b for a, b in pairwise(values))
