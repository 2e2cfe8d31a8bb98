"""Domains in random runs, and proof that the checker finds a border that lets too little or too much pass."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Final

import pytest
from tools.simulation.cores import failure

from fieldfare.core.borders import Borders
from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation.actions.clients import Publish, Subscribe, Unsubscribe
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.actions.nodes import Settle
from fieldfare.simulation.core_runs import run
from fieldfare.simulation.plans import Plan, Step, draw, federated, with_moves
from fieldfare.simulation.trace import Delivered, Published

ENOUGH: Final = 400
CROSSING: Final = [name for name, strategy in STRATEGIES.items() if strategy.crosses_borders]


def with_domains(seed: int, *strategies: str) -> Plan:
    """Return a plan with two or three domains, and channels that move inside theirs."""
    drawn = (draw(one, strategies or tuple(CROSSING)) for one in count(1000 * seed))
    plan = next(one for one in drawn if one.synced and one.parents and "Upgrade" not in str(one.steps))
    dice = Dice(seed)
    plan = plan._replace(homes=plan.homes or (dice.randrange(4), dice.randrange(4)))
    return federated(with_moves(plan, dice), dice)


@pytest.mark.parametrize("strategy", CROSSING)
def test_one_order_in_all_domains(strategy: str) -> None:
    for seed in range(2):
        assert failure(with_domains(seed, strategy)) == ""


def test_events_with_numbers_cross_borders_in_these_runs() -> None:
    crossed = 0
    for seed in range(6):
        plan = with_domains(seed)
        domains, trace = plan.domains(), run(plan).trace
        at = {(one.client, one.sequence): one.broker for one in trace if isinstance(one, Published)}
        for one in trace:
            if isinstance(one, Delivered) and one.channel_number:
                crossed += not domains.near(at[one.publisher, one.sequence], one.broker)
    assert crossed > 20


@pytest.mark.long
def test_long_runs_with_domains() -> None:
    assert [failure(with_domains(seed)) for seed in range(5000)] == [""] * 5000


# Faults that the checker must find


def found() -> str:
    """Return the first problem that random runs find."""
    problems = (failure(with_domains(seed)) for seed in range(ENOUGH))
    return next((problem for problem in problems if problem), "")


_cut: Final = Borders.cut


def without_return(borders: Borders, neighbour: str, update: Any) -> Any:
    """Cut an update, and forget the smaller filters that a larger has hidden."""
    if update.removed:
        small = _cut(borders, neighbour, type(update)(about=update.about, removed=update.removed))
        more = _cut(borders, neighbour, type(update)(update.added, about=update.about, all=update.all))
        return type(update)(more.added, small.removed, update.about, update.all)
    return _cut(borders, neighbour, update)


PLANTED: Final[dict[str, tuple[type, str, Callable[..., Any]]]] = {
    "unshared": (Borders, "_open_to", lambda _, routed: ()),
    "own_numbers": (Borders, "_home_for", lambda borders, *_: borders._core.broker.name),
    "lost_way": (Borders, "leaving", lambda *_: None),
    "not_back": (Borders, "entering", lambda _, neighbour, number, message: message),
}
"""by name: the place and the faulty function"""


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_at_a_border_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, attribute, function = PLANTED[name]
    monkeypatch.setattr(place, attribute, function)
    assert found()


HIDDEN: Final = Plan(
    26891,
    "imperfect",
    (1, 3, 2),
    (
        Step(0.0, Subscribe(21, "one", 3)),
        Step(0.0, Subscribe(43, "one", 4)),
        Step(0.0, Settle()),
        Step(0.0, Unsubscribe(43, "one")),
        Step(0.4, Publish(21, (2,))),
    ),
    homes=(0,),
    borders=(2, 3, 0),
    private=True,
)
"""a filter of a node behind a border covers another one of that border, but only after the cut, and then ends"""


def test_a_filter_comes_back_that_a_larger_one_has_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure(HIDDEN) == ""
    monkeypatch.setattr(Borders, "cut", without_return)
    assert failure(HIDDEN).startswith("liveness")


def test_an_event_that_is_not_shared_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Borders, "without_private", lambda _, routed: routed)
    monkeypatch.setattr(Borders, "_is_shared", lambda *_: True)
    monkeypatch.setattr(Borders, "cut", lambda _, neighbour, update: update)
    assert "was not published before" in found()
