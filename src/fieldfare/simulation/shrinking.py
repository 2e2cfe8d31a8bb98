"""Shrinking: a failing plan becomes a small plan with the same failure (delta debugging)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from fieldfare.simulation.plans import Plan, Step

T = TypeVar("T")


def shortest(items: Sequence[T], fails: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Return a failing part of the items; without any single item the part does not fail.

    >>> shortest(range(20), lambda some: 3 in some and 17 in some)
    [3, 17]
    """
    left, size = list(items), max(1, len(items) // 2)
    while True:
        start, before = 0, len(left)
        while start < len(left):
            rest = left[:start] + left[start + size :]
            if fails(rest):
                left = rest
            else:
                start += size
        if size > 1:
            size //= 2
        elif len(left) == before:
            return left


def shrink(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Return a smaller failing plan: fewer steps, fewer nodes, plainer steps."""
    plan = plan._replace(steps=tuple(shortest(plan.steps, lambda steps: fails(plan._replace(steps=tuple(steps))))))
    again = True
    while again:
        again = False
        for simpler in _simpler(plan):
            if fails(simpler):
                plan, again = simpler, True
                break
    return plan


def _simpler(plan: Plan) -> Iterator[Plan]:
    if plan.parents:
        yield plan._replace(parents=plan.parents[:-1])
    plainer = (
        plan._replace(replicas=0),
        plan._replace(clients=1),
        plan._replace(lag=0.0),
        plan._replace(key=""),
        plan._replace(members=min(plan.members, 2)),
        plan._replace(members=min(plan.members, 1)) if plan.copies else plan,
        plan._replace(forgetful=False),
        plan._replace(hierarchical=False),
        plan._replace(synced=True),
        plan._replace(apart=False),
        plan._replace(publishers="safe"),
        plan._replace(here=0, ahead=0),
        plan._replace(strategy="simple"),
        plan._replace(homes=plan.homes[:-1]),
        plan._replace(patterns=plan.patterns[:-1]),
    )
    yield from (other for other in plainer if other != plan)
    for number, step in enumerate(plan.steps):
        for simpler in (None, *_simpler_step(step)):
            rest = plan.steps[number + 1 :]
            yield plan._replace(steps=(*plan.steps[:number], *([] if simpler is None else [simpler]), *rest))


def _simpler_step(step: Step) -> Iterator[Step]:
    yield from (step._replace(act=simpler) for simpler in step.act.simpler())
    if step.pause:
        yield step._replace(pause=0.0)
