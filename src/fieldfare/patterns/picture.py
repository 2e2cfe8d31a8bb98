"""Pictures of patterns: the automaton as states and transitions, and as a diagram in the language of Mermaid.

A picture has the waiting states only, as runs see the automaton. A transition has the events that lead on; events that
end a run instead are named at the state.
"""

from __future__ import annotations

from typing import NamedTuple

from fieldfare.patterns.automaton import Label
from fieldfare.patterns.definition import Pattern
from fieldfare.patterns.durations import format_duration
from fieldfare.patterns.program import DETECTED, Program
from fieldfare.patterns.stamps import moment
from fieldfare.patterns.tree import After, At


class State(NamedTuple):
    """A state that waits for events."""

    number: int
    waits: str
    """Events that lead on."""
    fails: str
    """Events that end a run here; empty without such events."""
    first: bool
    """Whether a run may begin here."""


class Picture(NamedTuple):
    """States, and transitions from state to state; `DETECTED` is the end of a run."""

    states: list[State]
    transitions: list[tuple[int, int]]


def picture(pattern: Pattern) -> Picture:
    """Return the states and transitions of a pattern."""
    program = pattern.program
    first = {way.target for way in program.start}
    states = [
        State(number, _waits(program, number), _fails(program, number), number in first) for number in program.wants
    ]
    transitions = {(source, way.target) for source, ways in program.follow.items() for way in ways}
    return Picture(states, sorted(transitions))


def mermaid(pattern: Pattern) -> str:
    """Return a diagram of a pattern for Mermaid, which many viewers of Markdown draw.

    >>> from fieldfare.patterns import parse_pattern
    >>> print(mermaid(parse_pattern("a: [x = 1] b: [x = 2] a followed by not b within 5 min limit 9")))
    flowchart LR
        begin(( )) --> s0
        s0["a"]
        s1["5min later; b ends it"]
        s0 --> s1
        s1 --> detected
        detected(((detected)))
    """
    made = picture(pattern)
    names = {state.number: f"s{place}" for place, state in enumerate(made.states)} | {DETECTED: "detected"}
    lines = [f"    begin(( )) --> {names[state.number]}" for state in made.states if state.first]
    for state in made.states:
        text = f"{state.waits}; {state.fails} ends it" if state.fails else state.waits
        lines.append(f'    {names[state.number]}["{text}"]')
    lines += [f"    {names[source]} --> {names[target]}" for source, target in made.transitions]
    return "\n".join(["flowchart LR", *lines, "    detected(((detected)))"])


def _waits(program: Program, number: int) -> str:
    part = program.parts.get(number)
    if part is None:
        return " and ".join(f"({' or '.join(sorted(_names(side)))})" for side in program.sides[number])
    named = " or ".join(_label(program, name) for name in part.names)
    if part.negated:
        return f"{' or '.join(_label(program, one) for one in part.domain if one not in part.names)}, not {named}"
    return named


def _fails(program: Program, number: int) -> str:
    part = program.parts.get(number)
    if part is None:
        return ""
    ending = part.names if part.negated else [one for one in part.domain if one not in part.names]
    return " or ".join(_label(program, one) for one in ending)


def _names(program: Program) -> set[str]:
    return {_label(program, one) for wanted in program.wants.values() for one in wanted}


def _label(program: Program, label: Label) -> str:
    """Return a name, or the time of a timer."""
    if isinstance(label, str):
        return label
    match program.timers[label].when:
        case After(duration) | int(duration):
            return f"{format_duration(duration)} later"
        case At(time):
            return f"{moment(time):%Y-%m-%d %H:%M:%S}"
