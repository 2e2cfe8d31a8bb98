"""Short histories in the notation of the specification, and what detectors make of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fieldfare.patterns.machine import Match, Policy, initial, steps
from fieldfare.patterns.parser import parse_core
from fieldfare.patterns.program import compile_program
from fieldfare.patterns.runs import NEVER, Composite, Item, Offer
from fieldfare.patterns.stamps import SECOND, Occurrence

CHRONICLE = Policy()
SETS = {"Ā": {"Ā"}, "bob": {"P", "bob"}, "alice": {"P", "A"}}
"""names of events that belong to other sets than that of their first letters"""
_EVENT = re.compile(r"(?P<name>[^\W\d]+)(?P<number>\d*)@(?:\[(?P<low>\d+),(?P<high>\d+)\]|(?P<point>\d+))")


def history(text: str) -> list[Offer]:
    """Return the offers of a text such as `A1@1 B1@[2,5]`, in the order of the text."""
    offers = []
    for number, found in enumerate(_EVENT.finditer(text)):
        low, high = (int(found[end] or found["point"]) * SECOND for end in ("low", "high"))
        name = found["name"] + found["number"]
        event = Occurrence(low, high, {"name": name}, "", number)
        offers.append(Offer(event, event.key, frozenset(SETS.get(found["name"], {found["name"]})), event.event))
    return offers


def shown(match: Match) -> str:
    """Return a match in the notation of the specification."""
    low, high = (end // SECOND for end in match.stamp)
    return f"{_items(match.items)}@[{low},{high}]"


def _items(items: Iterable[Item]) -> str:
    return "+".join(
        f"({_items(what.items)})" if isinstance(what, Composite) else str(what.event["name"]) for _, what in items
    )


def detections(expression: str, text: str, *, skip: bool = False, policy: Policy = CHRONICLE) -> list[str]:
    program = compile_program(parse_core(expression), skip=skip)
    _, matches = steps(program, policy, initial(program, policy), history(text), NEVER - 1)
    return [shown(match) for match in matches]
