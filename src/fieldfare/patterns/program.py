"""Programs: automata without ε-transitions, as runs follow them.

For every state that waits for events a program says which names concern the state, and, after a match, which states
come next and which effects on the registers are on the way there. The runs of all keys share a
program.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from fieldfare.patterns.automaton import Automaton, Count, Effect, Label, Mark, Part, State, Timer, compile_tree
from fieldfare.patterns.tree import Parallel, Tree

DETECTED: Final = -1
"""the state of a run that has detected its pattern"""


class Way(NamedTuple):
    """A way along ε-transitions to a waiting state, or to `DETECTED`."""

    target: int
    effects: tuple[Effect, ...]


class Bindings(Protocol):
    """Conditions between the events of a match; see `conditions`."""

    @property
    def start(self) -> tuple[Any, ...]:
        """The values before the first event."""

    def fold(self, values: tuple[Any, ...], name: str, fields: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values after another event of a name."""

    def holds(self, name: str, values: tuple[Any, ...], fields: Mapping[str, Any]) -> bool:
        """Tell whether an event may have a name in a match with the values so far."""

    def fit(self, tree: Parallel, values: tuple[Any, ...]) -> bool:
        """Tell whether the two sides of a parallel part fit together."""

    def complete(self, values: tuple[Any, ...]) -> bool:
        """Tell whether a match may end with the values."""


@dataclass(frozen=True, slots=True)
class Program:
    """The ways of an automaton, by state."""

    automaton: Automaton
    start: tuple[Way, ...]
    follow: Mapping[int, tuple[Way, ...]]
    parts: Mapping[int, Part]
    sides: Mapping[int, tuple[Program, ...]]
    wants: Mapping[int, frozenset[Label]]
    """By waiting state: names of the domain, and numbers of timers."""
    flags: tuple[int, ...]
    """Registers that say whether an operand has events."""
    timers: tuple[Timer, ...]
    repetitions: tuple[bool, ...]
    skip: bool = False
    """Whether a run ignores events that come in the wrong order, instead of failing."""
    bindings: Bindings | None = None
    whole: bool = True
    """Whether the program is that of a whole pattern, and not of a side of a parallel part."""
    signatures: dict[tuple[int, ...], frozenset[Label]] = field(default_factory=dict)
    """By states of an instance: all names that concern it."""

    def interests(self, states: tuple[int, ...]) -> frozenset[Label]:
        """Return all names of interest to runs in some states."""
        found = self.signatures.get(states)
        if found is None:
            found = self.signatures[states] = frozenset().union(*(self.wants[state] for state in states))
        return found


def compile_program(tree: Tree, *, skip: bool = False, bindings: Bindings | None = None) -> Program:
    """Return the program of a tree.

    >>> from fieldfare.patterns.parser import parse_core
    >>> program = compile_program(parse_core("[A]* ; [B]"))
    >>> [sorted(program.wants[way.target]) for way in program.start]
    [['A'], ['B']]
    """
    return _program(compile_tree(tree), skip, bindings, whole=True)


def _program(automaton: Automaton, skip: bool, bindings: Bindings | None, *, whole: bool) -> Program:
    states = automaton.states
    after = {edge.source: edge.target for edge in automaton.edges if waits(states[edge.source])}
    ways = _Ways(automaton)
    sides = {
        number: tuple(_program(side, skip, bindings, whole=False) for side in state.parallel)
        for number, state in enumerate(states)
        if state.parallel is not None
    }
    parts = {number: state.atom for number, state in enumerate(states) if state.atom is not None}
    wants: dict[int, frozenset[Label]] = {number: frozenset((*p.names, *p.domain)) for number, p in parts.items()}
    for number, pair in sides.items():
        wants[number] = frozenset().union(*(side.wants[state] for side in pair for state in side.wants))
    flags = {effect.register for edge in automaton.edges for effect in edge.effects if isinstance(effect, Mark)}
    return Program(
        automaton,
        ways.of(automaton.start),
        {number: ways.of(after[number]) for number in wants},
        parts,
        sides,
        wants,
        tuple(sorted(flags)),
        tuple(automaton.shared.timers),
        tuple(automaton.shared.repetitions),
        skip,
        bindings,
        whole,
    )


def waits(state: State) -> bool:
    """Tell whether a state waits for events; the others have ε-transitions only."""
    return state.atom is not None or state.parallel is not None


class _Ways:
    """The ways along ε-transitions, in the order in which the transitions were made."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton = automaton
        self._links: dict[int, list[tuple[int, tuple[Effect, ...]]]] = {}
        for edge in automaton.edges:
            if not waits(automaton.states[edge.source]):
                self._links.setdefault(edge.source, []).append((edge.target, edge.effects))

    def of(self, state: int) -> tuple[Way, ...]:
        """Return the ways from a state; ways which differ only in counts are the same."""
        found: dict[tuple[int, tuple[Effect, ...]], Way] = {}
        visited: set[tuple[int, tuple[Effect, ...]]] = set()
        stack: list[tuple[int, tuple[Effect, ...], frozenset[int]]] = [(state, (), frozenset())]
        while stack:
            at, effects, seen = stack.pop()
            plain = tuple(effect for effect in effects if not isinstance(effect, Count))
            if (at, plain) in visited:  # else alternatives that may be empty would double the ways each time
                continue
            visited.add((at, plain))
            target = DETECTED if at == self._automaton.end else at
            node = self._automaton.states[at]
            if target == DETECTED or waits(node):
                found.setdefault((target, plain), Way(target, effects))
                continue
            stack += [
                (then, effects + more, seen | {at})
                for then, more in reversed(self._links.get(at, ()))
                if then not in seen
            ]
        return tuple(found.values())
