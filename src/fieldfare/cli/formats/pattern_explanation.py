"""The answers of `fieldfare explain --pattern`: the automaton, relations of the atoms, bounds, and near misses."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import msgspec
import typer

from fieldfare.cli.errors import InputError
from fieldfare.events import Event, json
from fieldfare.patterns import Detector, Occurrence, Pattern, parse_pattern
from fieldfare.patterns.bounds import endless, states
from fieldfare.patterns.picture import mermaid
from fieldfare.patterns.relaxations import near_misses
from fieldfare.patterns.runs import primitive
from fieldfare.patterns.stamps import moment


class Named(msgspec.Struct, frozen=True):
    """An event of a history with its name in the pattern."""

    name: str
    time: str
    event: msgspec.Raw


class Story(msgspec.Struct, frozen=True):
    """Events that are a match, or nearly; then with the reason why they are none."""

    key: list[Any]
    events: list[Named]
    reason: str = ""


class History(msgspec.Struct, frozen=True):
    """The finds of a pattern in the events of a file."""

    events: int
    detections: list[Story]
    open: int
    """Instances that still wait."""
    near_misses: list[Story]


class PatternExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to all questions of a user about a pattern."""

    pattern: str
    atoms: dict[str, str]
    never_together: list[tuple[str, str]]
    """Pairs of atoms that no event is both of."""
    always: list[tuple[str, str]]
    """Pairs: each event that is the first is also the second."""
    states: int
    automaton: str
    """A diagram for Mermaid."""
    waits_for_ever: str
    """An atom that an instance may wait for without end; empty if time ends every instance."""
    instances: int
    """Open instances for each key, at most."""
    history: History | None = None


def read_pattern(given: str) -> Pattern:
    """Return the pattern of a text, or of a file behind @."""
    try:
        return parse_pattern(Path(given[1:]).read_text("utf-8") if given.startswith("@") else given)
    except OSError as error:
        raise InputError("--pattern", f"{given[1:]} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError("--pattern", error) from None


def explain_pattern(pattern: Pattern, events: Sequence[Occurrence] | None = None) -> PatternExplanation:
    """Return the explanation of a pattern, and of its finds in a history."""
    filters = {name: pattern.filters[name] for name in pattern.names}
    return PatternExplanation(
        pattern=pattern.text,
        atoms={name: str(filter) for name, filter in filters.items()},
        never_together=[(a, b) for a, b in combinations(filters, 2) if not filters[a].overlaps(filters[b])],
        always=[(a, b) for a, b in permutations(filters, 2) if filters[b].covers(filters[a])],
        states=states(pattern),
        automaton=mermaid(pattern),
        waits_for_ever=endless(pattern),
        instances=pattern.policy.instances,
        history=None if events is None else _history(pattern, events),
    )


def _history(pattern: Pattern, events: Sequence[Occurrence]) -> History:
    ordered = sorted(events, key=lambda one: one.key)
    detector = Detector({"": pattern})
    detections = [_story(one.values, primitive(one.match.items)) for one in detector.step(ordered)]
    missed = [_story(one.key, one.events, one.reason) for one in near_misses(pattern, ordered)]
    return History(len(ordered), detections, detector.open, missed)


def _story(key: Sequence[Any], events: Any, reason: str = "") -> Story:
    named = [Named(name, f"{moment(one.high):%Y-%m-%d %H:%M:%S}", _encoded(one.event)) for name, one in events]
    return Story(list(key), named, reason)


def _encoded(event: Any) -> msgspec.Raw:
    return msgspec.Raw(json.encode(event if isinstance(event, Event) else Event(event)))


def as_json(found: PatternExplanation) -> str:
    """Return an explanation as JSON."""
    return msgspec.json.format(msgspec.json.encode(found), indent=2).decode()


def show(found: PatternExplanation) -> None:
    """Print an explanation, with the near misses last."""
    typer.echo(f"{found.pattern}\n")
    for first, second in found.never_together:
        typer.echo(f"no event is both {first} and {second}")
    for first, second in found.always:
        typer.echo(f"every {first} is also {second}")
    end = f"may wait for {found.waits_for_ever} for ever" if found.waits_for_ever else "ends by itself"
    typer.echo(f"{found.states} states; an instance {end}; {found.instances:,} open instances for each key, at most")
    typer.echo(f"\n{found.automaton}")
    if found.history is None:
        return
    history = found.history
    detections = _plural(len(history.detections), "detection")
    typer.echo(f"\n{history.events:,} events: {detections}, {history.open:,} still open")
    for story in history.detections:
        _tell("detected", story)
    for story in history.near_misses:
        _tell(f"not detected: {story.reason}", story)


def _tell(title: str, story: Story) -> None:
    key = f" ({', '.join(map(str, story.key))})" if story.key else ""
    typer.echo(f"\n{title}{key}")
    for one in story.events:
        typer.echo(f"  {one.time}  {one.name}  {bytes(one.event).decode()}")


def _plural(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
