"""`Pattern`: an expression with everything that a detector needs besides, compiled and checked.

A pattern has named filters, a tree, keys (a state for each card), conditions between events, fields of the composite
event, a policy, windows and the disorder of events to wait for. The text of a pattern can be read back by `language`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from fieldfare.events.event import Event
from fieldfare.events.values import MISSING
from fieldfare.filters.expressions import UNCERTAIN
from fieldfare.filters.filter import Filter
from fieldfare.filters.literals import name as quoted
from fieldfare.patterns import tree as t
from fieldfare.patterns.composite import RESERVED, composite_event
from fieldfare.patterns.conditions import Condition, Placed, Selection, parse_conditions, parse_selection, placed
from fieldfare.patterns.durations import format_duration, parse_duration
from fieldfare.patterns.expression import Expression
from fieldfare.patterns.machine import Match, Policy, Skip
from fieldfare.patterns.printer import print_core
from fieldfare.patterns.program import Program, compile_program

SKIPS: Final = ("chronicle", "past last", "to next", "to first", "to last")
"""choices after a match, as the text names choices"""
_DEFAULT: Final = Policy()


@dataclass(frozen=True)
class Pattern:
    """A pattern ready for a detector; `pattern` makes one."""

    expression: Expression
    keys: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    selections: tuple[Selection, ...] = ()
    policy: Policy = _DEFAULT
    window: int = 0
    """Duration of tumbling windows in microseconds; 0 for none."""
    disorder: int = 0
    """Microseconds that events may be late."""

    @property
    def tree(self) -> t.Tree:
        """The expression in the core language."""
        return self.expression.tree

    @property
    def filters(self) -> Mapping[str, Filter]:
        """The filter of each name."""
        return self.expression.filters

    @cached_property
    def names(self) -> list[str]:
        """The names of events, in the order of the pattern."""
        return t.names(self.tree)

    @cached_property
    def program(self) -> Program:
        """The compiled pattern; events in a wrong order are ignored."""
        return compile_program(self.tree, skip=True, bindings=self.bindings)

    @cached_property
    def bindings(self) -> Placed | None:
        """Conditions and accumulators as a program takes both; None for a pattern with neither."""
        return placed(self.conditions, self.selections, self.tree, self.names)

    @cached_property
    def text(self) -> str:
        """The pattern as a text, with the expression in the core language."""
        lines = [f"{name}: [{self.filters[name]}]" for name in self.names]
        lines.append(f"core {print_core(self.tree)}")
        if self.keys:
            lines.append("for each " + ", ".join(map(quoted, self.keys)))
        if self.window:
            lines.append(f"in windows of {format_duration(self.window)}")
        if self.conditions:
            lines.append("where " + " AND ".join(f"({one.text})" for one in self.conditions))
        if self.selections:
            lines.append("select " + ", ".join(f"{one.text} as {one.name}" for one in self.selections))
        if self.policy.skip != "chronicle":
            target = f" {self.policy.target}" if self.policy.target else ""
            event = " event" if self.policy.skip in ("past last", "to next") else ""
            lines.append(f"after match {self.policy.skip}{event}{target}")
        if self.policy.one_shot:
            lines.append("once")
        if self.disorder:
            lines.append(f"allow {format_duration(self.disorder)} of disorder")
        if self.policy.instances != _DEFAULT.instances:
            lines.append(f"limit {self.policy.instances}")
        return "\n".join(lines)

    def key_of(self, fields: Mapping[str, Any], high: int) -> tuple[Any, ...] | None:
        """Return the key of an event, with the number of the window; None for an event without a field of the key."""
        key = []
        for path in self.keys:
            value = fields.get(path, MISSING)
            if value is MISSING or value != value or isinstance(value, (dict, list, tuple)):
                return None
            key.append((value, type(value) is bool))
        if self.window:
            key.append((high // self.window, False))
        return tuple(key)

    def event(self, match: Match, *, name: str = "", detector: str = "") -> Event:
        """Return the composite event of a match, with the selected fields."""
        selected = {}
        bindings = self.bindings
        for one in self.selections if bindings is not None else ():
            assert bindings is not None
            value = one.value.evaluate(bindings.accumulators.fields(one.references, match.values))
            if value is not MISSING and value is not UNCERTAIN:
                selected[one.name] = value
        return composite_event(match, self.text, name=name, detector=detector, selected=selected)


def pattern(
    expression: Expression,
    *,
    for_each: str | Sequence[str] = (),
    where: str = "",
    select: Mapping[str, str] | None = None,
    after_match: Skip | str = "chronicle",
    once: bool = False,
    windows: str | int | None = None,
    disorder: str | int | None = None,
    limit: int | None = None,
) -> Pattern:
    """Return a pattern; a ValueError names a mistake.

    Args:
        expression: the events, of `event` and the operators of `Expression`.
        for_each: fields of the key; events with another key are another story.
        where: conditions between events, joined by AND.
        select: fields of the composite event, by name.
        after_match: "chronicle", "past last", "to next", "to first NAME" or "to last NAME".
        once: end with the first success or failure.
        windows: duration of tumbling windows; a match lies in a single window.
        disorder: how late events may come.
        limit: open instances for each key.
    """
    names = t.names(expression.tree)
    keys = (for_each,) if isinstance(for_each, str) else tuple(for_each)
    for name in names:
        if name not in expression.filters:
            raise ValueError(f"the name {name} stands for no filter")
        if expression.filters[name].is_empty:
            raise ValueError(f"the filter of {name} matches nothing")
    conditions = tuple(parse_conditions(where, names, keys)) if where else ()
    selections = tuple(_selection(name, text, names, keys) for name, text in (select or {}).items())
    made = Pattern(
        expression,
        keys,
        conditions,
        selections,
        _policy(after_match, once, limit, names),
        parse_duration(str(windows)) if windows else 0,
        parse_duration(str(disorder)) if disorder else 0,
    )
    made.program  # noqa: B018  # a tree without a meaning is refused here
    return made


def _selection(name: str, text: str, names: Sequence[str], keys: Sequence[str]) -> Selection:
    if name in RESERVED:
        raise ValueError(f"every composite event has a field {name}: select under another name")
    return parse_selection(name, text, names, keys)


def _policy(after_match: str, once: bool, limit: int | None, names: Sequence[str]) -> Policy:
    words = after_match.split()
    skip, target = " ".join(words[:2]), " ".join(words[2:])
    if skip not in SKIPS or (skip in ("to first", "to last")) != bool(target):
        raise ValueError(
            f"after a match: {', '.join(SKIPS)} (with a name after to first and to last), not {after_match!r}"
        )
    if target and target not in names:
        raise ValueError(f"after a match {after_match}: the pattern has no name {target}")
    if limit is not None and limit < 1:
        raise ValueError("a limit is at least 1")
    instances = _DEFAULT.instances if limit is None else limit
    return Policy(skip, target, once, instances)  # type: ignore[arg-type]  # checked above
