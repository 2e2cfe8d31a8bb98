"""Runs by cost model, policy and place on an axis, with the checks that claims use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple

from fieldfare.routing.publisher_policies import PublisherPolicy
from fieldfare.routing.strategies import COVERING, with_advertisements
from fieldfare.simulation.processing_time import calibrate
from fieldfare_lab.mobility.city import Case, Outcome, run
from fieldfare_lab.mobility.observed_brokers import COMPLEX, FAST, NONE, Model
from fieldfare_lab.results import Curves, Settings

_PUBLISHERS: Final = (50, 150, 250)
_TABLE: Final = 300
"""approximate number of filters in a table of these runs"""


@lru_cache(maxsize=1)
def measured(clock: Callable[[], float]) -> Model:
    """Return the model of Fieldfare's own brokers, calibrated on the machine."""
    costs = calibrate(with_advertisements(COVERING), (_TABLE,), clock=clock)
    event, update = costs.event.at(_TABLE), costs.tell.at(_TABLE)
    return Model("measured", event, update, update)


class Grid(NamedTuple):
    """The outcomes of runs by cost model, policy and place on an axis."""

    x: str
    at: tuple[float, ...]
    models: tuple[Model, ...]
    policies: tuple[PublisherPolicy, ...]
    outcomes: dict[tuple[str, str, float], Outcome]

    def values(self, model: Model, policy: PublisherPolicy, value: Callable[[Outcome], float]) -> list[float]:
        """Return a value of the outcomes of a model and policy, along the axis."""
        return [value(self.outcomes[model.name, policy.name, at]) for at in self.at]

    def curves(self, title: str, value: Callable[[Outcome], float]) -> tuple[Curves, ...]:
        """Return curves for each model, with a line for each policy."""
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
    """Run all models and policies; `change` adapts the usual case to a place on the axis."""
    places, models, policies = tuple(dict.fromkeys(at)), models_of(settings), tuple(policies)
    outcomes = {
        (model.name, policy.name, place): run(change(case_of(settings, policy, model), place))
        for model in models
        for policy in policies
        for place in places
    }
    return Grid(x, places, models, policies, outcomes)


def models_of(settings: Settings) -> tuple[Model, ...]:
    """Return the three cost models of the literature and the measured model of Fieldfare's brokers."""
    return NONE, FAST, COMPLEX, measured(settings.clock)


def case_of(settings: Settings, policy: PublisherPolicy, model: Model) -> Case:
    """Return the usual case of a policy and a model; experiments change single parameters of it."""
    return Case(
        policy, model, settings.size(50), settings.size(500), length=max(20.0, 45.0 * min(1.0, settings.scale)),
        seed=settings.seed,
    )  # fmt: skip


def by_publishers(settings: Settings, policies: Iterable[PublisherPolicy], every: float | None = None) -> Grid:
    """Run the policies with 50, 150 and 250 publishers; `every` is the time between two events of a publisher."""
    at = (settings.size(number) for number in _PUBLISHERS)

    def change(case: Case, number: float) -> Case:
        length = case.length if every is None else min(30.0, case.length)  # many events take long to simulate
        return case._replace(publishers=int(number), every=every, length=length)

    return grid_of(settings, "publishers", at, policies, change)


def rate(outcome: Outcome) -> float:
    """Return the messages a move, comparable between runs with different numbers of moves."""
    return outcome.messages / max(1, outcome.moves)


def listed(values: Iterable[float]) -> str:
    """Write the values as text, with three digits."""
    return ", ".join(f"{value:,.3g}" for value in values)


def work(load: dict[str, list[float]]) -> str:
    """Write the loads of each model as text; models without load are left out."""
    return "; ".join(f"{name} {listed(values)}" for name, values in load.items() if any(values))


def times(values: Sequence[float], others: Sequence[float]) -> float:
    """Return the smallest ratio of a value to its counterpart."""
    return min(a / b if b else inf for a, b in zip(values, others, strict=True))


def flat(values: Sequence[float], factor: float) -> bool:
    """Tell whether the largest value is at most `factor` times the smallest."""
    return max(values) <= factor * min(values)


def rises(values: Sequence[float]) -> bool:
    """Tell whether each value is larger than the value before."""
    return all(a < b for a, b in pairwise(values))
