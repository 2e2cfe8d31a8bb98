"""Decomposition: a part of a pattern gets a separate detector, and the rest waits for the part's composite events.

The literature lets any sub-expression be detected apart. But a separate detector runs always: `b followed by c` as
the right side of `a followed by (b followed by c)` pairs a b from before the a with the c: the pattern is missed.
With chronicle consumption, point events, and no event in two of the parts, three kinds of parts are exact (`cuts`),
and only such parts are cut:

- a *branch*, an alternative of the whole;
- a *prefix*, the beginning of a sequence, if instances of the prefix end in the order of the beginnings: then each
  event of the rest goes to the same instance. Steps in sequence do so, alternatives and open repetitions do not;
- a *side* of `||`, if neither side can fail, nor run out of time.

A part is cut with the keys, the windows and the limits in time around it. Conditions and selected fields on
the part alone go with the part. A detection is put together again (`Recipe.event`), with the same events and the same
type as without the cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from fieldfare.events.event import Event
from fieldfare.events.values import MISSING
from fieldfare.filters import parse
from fieldfare.filters.expressions import UNCERTAIN
from fieldfare.filters.literals import name as quoted
from fieldfare.patterns import tree as t
from fieldfare.patterns.canonical import canonical_names, disjoint, normal, renamed_text
from fieldfare.patterns.composite import RESERVED, composite_event, composite_type
from fieldfare.patterns.conditions import ANY, Condition, Selection, parse_selection
from fieldfare.patterns.definition import Pattern
from fieldfare.patterns.expression import Expression
from fieldfare.patterns.machine import Match
from fieldfare.patterns.runs import Composite, Item
from fieldfare.patterns.stamps import Occurrence, microseconds

Path = tuple[int, ...]
"""A place in a tree: the operands on the way from the root."""
_LEAST: Final = 2
"""events of the smallest part that is worth a detector"""


class Cut(NamedTuple):
    """A part of a pattern, fit for a separate detector."""

    path: Path
    kind: str
    """ "branch", "prefix", "side"; "relay" for the whole """
    pattern: Pattern
    """The part, in canonical form."""
    names: Mapping[str, str]
    """Names in the pattern, by name in the part."""
    fields: Mapping[str, str]
    """Fields of the part's composite events by selected field of the pattern."""

    @property
    def type(self) -> str:
        """The type of the part's composite events."""
        return composite_type(self.pattern.text)

    def overlaps(self, other: Cut) -> bool:
        """Tell whether either part is inside of the other."""
        shorter, longer = sorted((self.path, other.path), key=len)
        return longer[: len(shorter)] == shorter


class Recipe(NamedTuple):
    """A pattern and the way to detect it: the pattern of the detector, and the names of composite events."""

    whole: Pattern
    runs: Pattern
    parts: Mapping[str, Cut]
    """By name in `runs`."""

    @property
    def type(self) -> str:
        """The type of the composite events."""
        return composite_type(self.whole.text)

    def match(self, match: Match) -> Match:
        """Return a match with the events of the parts in the right places."""
        return match._replace(items=tuple(_expanded(match.items, self.parts)))

    def event(self, match: Match, *, name: str = "", detector: str = "") -> Event:
        """Return the composite event of a match, as if the pattern had been detected in one place."""
        if not self.parts:
            return self.whole.event(match, name=name, detector=detector)
        selected, bindings = {}, self.runs.bindings
        for one in self.runs.selections if bindings is not None else ():
            assert bindings is not None
            value = one.value.evaluate(bindings.accumulators.fields(one.references, match.values))
            if value is not MISSING and value is not UNCERTAIN:
                selected[one.name] = value
        whole = self.match(match)
        return composite_event(whole, self.whole.text, name=name, detector=detector, selected=selected)


def cuts(pattern: Pattern) -> list[Cut]:
    """Return the parts of a pattern fit for separate detection, parts around other parts first.

    >>> from fieldfare.patterns import parse_pattern
    >>> fraud = parse_pattern("a: [x = 1] b: [x = 2] c: [x = 3] (a followed by b followed by c) within 1 hour")
    >>> [print(one.pattern.text) for one in cuts(fraud)]
    e1: [x = 1]
    e2: [x = 2]
    core ([e1] ; [e2])_{<=1h}
    [None]
    """
    policy = pattern.policy
    if policy.skip != "chronicle" or policy.one_shot or pattern.disorder or _hidden_keys(pattern):
        return []
    if len({pattern.filters[name] for name in pattern.names}) < len(pattern.names):
        return []
    if any(not _about(one) for one in pattern.conditions):
        return []
    whole = leaning(pattern)
    found = []
    for path, kind, limit in _places(whole.tree, (), whole, 0):
        cut = _cut(whole, path, kind, limit)
        if cut is not None:
            found.append(cut)
    return found


def leaning(pattern: Pattern) -> Pattern:
    """Return a pattern with the tree for the paths of cuts, and with the names of the pattern."""
    return replace(pattern, expression=replace(pattern.expression, tree=normal(pattern.tree, pattern.filters)))


def split(pattern: Pattern, chosen: Sequence[Cut], detectors: Mapping[str, str] | None = None) -> Recipe:
    """Return a recipe for a pattern with some parts detected apart.

    Args:
        pattern: the pattern.
        chosen: parts, none inside of another.
        detectors: the detecting node by type of a part; without a node, any node.
    """
    if not chosen:
        return Recipe(pattern, pattern, {})
    if any(one.overlaps(other) for place, one in enumerate(chosen) for other in chosen[:place]):
        raise ValueError("a part inside of another part is cut from that part")
    whole = leaning(pattern)
    tree, parts, filters = whole.tree, dict[str, Cut](), dict(whole.filters)
    for cut in chosen:
        name = _fresh(filters, len(parts) + 1)
        tree, parts[name] = _replaced(tree, cut.path, t.Atom((name,))), cut
        node = (detectors or {}).get(cut.type)
        text = f"type = '{cut.type}'" + (f" AND detector = '{_quoted(node)}'" if node is not None else "")
        filters[name] = parse(text)
    names = t.names(tree)
    keys = pattern.keys
    runs = replace(
        whole,
        expression=Expression(tree, {name: filters[name] for name in names}),
        conditions=tuple(one for one in whole.conditions if _about(one) <= set(names)),
        selections=tuple(_lifted(one, parts, names, keys) for one in whole.selections),
    )
    return Recipe(pattern, runs, parts)


def recipe_of(pattern: Pattern, hosts: Mapping[str, str]) -> Recipe:
    """Return the recipe for a pattern with some parts, or the whole, detected at other nodes.

    Args:
        pattern: the pattern.
        hosts: nodes by type of the detected part; parts absent from the pattern are of no interest.
    """
    if not hosts:
        return Recipe(pattern, pattern, {})
    form, names = canonical_names(pattern)
    type = composite_type(form.text)
    if type in hosts:
        return _relay(pattern, Cut((), "relay", form, names, {one.name: one.name for one in form.selections}), hosts)
    chosen: list[Cut] = []
    for cut in cuts(pattern):
        if cut.type in hosts and not any(cut.overlaps(one) for one in chosen):
            chosen.append(cut)
    return split(pattern, chosen, hosts)


def _relay(pattern: Pattern, cut: Cut, hosts: Mapping[str, str]) -> Recipe:
    """Return a recipe to pass on the detections of another node."""
    filter = parse(f"type = '{cut.type}' AND detector = '{_quoted(hosts[cut.type])}'")
    fields = tuple(parse_selection(name, f"c1.{name}", ["c1"]) for name in cut.fields)
    return Recipe(pattern, Pattern(Expression(t.Atom(("c1",)), {"c1": filter}), selections=fields), {"c1": cut})


def _lifted(one: Selection, parts: Mapping[str, Cut], names: Sequence[str], keys: Sequence[str]) -> Selection:
    for name, cut in parts.items():
        if one.name in cut.fields:
            return parse_selection(one.name, f"{name}.{cut.fields[one.name]}", names, keys)
    return one


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _fresh(filters: Mapping[str, Any], number: int) -> str:
    while f"c{number}" in filters:
        number += 1
    return f"c{number}"


# Where a pattern may be cut


def _places(tree: t.Tree, path: Path, pattern: Pattern, limit: int) -> Iterator[tuple[Path, str, int]]:
    """Yield the places of exact cuts, the kind of each, and the limit in time around the cut."""
    match tree:
        case t.Within():
            yield from _places(tree.body, (*path, 0), pattern, min(limit or tree.duration, tree.duration))
        case t.Alternation() if _apart(tree.left, tree.right, pattern):
            for place, side in enumerate((tree.left, tree.right)):
                if not t.may_be_empty(side) and _events(side) >= _LEAST:
                    yield (*path, place), "branch", limit
                yield from _places(side, (*path, place), pattern, limit)
        case t.Sequence() | t.Concatenation():
            yield from _prefixes(tree, path, pattern, limit)
        case t.Parallel() if not limit and _apart(tree.left, tree.right, pattern):
            if _plain(tree.left) and _plain(tree.right):
                for place, side in enumerate((tree.left, tree.right)):
                    if _events(side) >= _LEAST:
                        yield (*path, place), "side", 0


def _prefixes(
    tree: t.Sequence | t.Concatenation, path: Path, pattern: Pattern, limit: int
) -> Iterator[tuple[Path, str, int]]:
    """Yield the beginnings of a sequence, the longest first; the rest is apart from all beginnings."""
    rest: list[t.Tree] = []
    node: t.Tree = tree
    while isinstance(node, (t.Sequence, t.Concatenation)):
        rest.append(node.right)
        node, path = node.left, (*path, 0)
        if _events(node) >= _LEAST and _steps(node) and all(_apart(node, one, pattern) for one in rest):
            yield path, "prefix", limit


def _apart(one: t.Tree, other: t.Tree, pattern: Pattern) -> bool:
    """Tell whether no event is of interest to both."""
    known = pattern.filters
    a, b = ([name for name in t.names(tree) if name in known] for tree in (one, other))
    return disjoint(a, b, known)


def _steps(tree: t.Tree) -> bool:
    """Tell whether instances of a part end in the order of beginning, and only by events."""
    match tree:
        case t.Atom():
            return True
        case t.Sequence() | t.Concatenation():
            return _steps(tree.left) and _steps(tree.right)
        case t.Repetition():
            return tree.low == tree.high and _steps(tree.body)
        case t.Within():
            return _steps(tree.body)
        case t.Timing():
            ended = any(tree.timer in atom.names or atom.negated for atom in t.atoms(tree.right))
            return isinstance(tree.when, t.After) and not ended and _steps(tree.left) and _steps(tree.right)
    return False


def _plain(tree: t.Tree) -> bool:
    """Tell whether a part is made of steps without a way to fail."""
    match tree:
        case t.Atom():
            return not tree.negated and set(tree.within) == set(tree.names)
        case t.Sequence() | t.Concatenation():
            return _plain(tree.left) and _plain(tree.right)
    return False


def _events(tree: t.Tree) -> int:
    """Return the least number of events for a part, repetitions counted."""
    match tree:
        case t.Atom():
            return 1
        case t.Repetition():
            return tree.low * _events(tree.body)
        case t.Within():
            return _events(tree.body)
        case t.Alternation():
            return max(_events(tree.left), _events(tree.right))
        case _:
            return sum(map(_events, t.children(tree)))


# The part


def _cut(pattern: Pattern, path: Path, kind: str, limit: int) -> Cut | None:
    """Return the part at a place with all demands on the part; None if a demand is about the part and the rest."""
    tree = _at(pattern.tree, path)
    mine = set(t.names(tree)) & pattern.filters.keys()
    conditions, fields = [], dict[str, Selection]()
    for condition in pattern.conditions:
        about = _about(condition)
        if about & mine and (kind != "branch" or about - mine):
            return None
        if about & mine:
            conditions.append(condition)
    for selection in pattern.selections:
        about = _about(selection)
        if about & mine and about - mine:
            return None
        if about & mine:
            fields[selection.name] = selection
    part = replace(
        pattern,
        expression=Expression(t.Within(tree, limit) if limit else tree, {name: pattern.filters[name] for name in mine}),
        conditions=tuple(conditions),
        selections=(),
    )
    form, names = canonical_names(part)
    new = {old: name for name, old in names.items()}
    texts = {name: renamed_text(one.text, one.references, new) for name, one in fields.items()}
    numbered = {text: f"v{number}" for number, text in enumerate(sorted(set(texts.values())), 1)}
    order = list(new.values())
    selections = [parse_selection(key, quoted(key), order, form.keys) for key in form.keys]
    selections += [parse_selection(field, text, order, form.keys) for text, field in numbered.items()]
    if set(numbered.values()) & set(form.keys):
        return None
    made = replace(form, selections=tuple(sorted(selections, key=lambda one: one.name)))
    return Cut(path, kind, made, names, {name: numbered[text] for name, text in texts.items()})


def _about(what: Condition | Selection) -> set[str]:
    return {one.name for one in what.references if one.name != ANY}


def _hidden_keys(pattern: Pattern) -> bool:
    """Tell whether a key cannot be a field of composite events."""
    return any(key in RESERVED or not key.isidentifier() for key in pattern.keys)


def _at(tree: t.Tree, path: Path) -> t.Tree:
    for place in path:
        tree = t.children(tree)[place]
    return tree


def _replaced(tree: t.Tree, path: Path, new: t.Tree) -> t.Tree:
    if not path:
        return new
    inner = _replaced(t.children(tree)[path[0]], path[1:], new)
    if isinstance(tree, (t.Repetition, t.Within)):
        return replace(tree, body=inner)
    assert not isinstance(tree, t.Atom), "an atom has no parts"
    return replace(tree, left=inner) if path[0] == 0 else replace(tree, right=inner)


# A detection put together again


def _expanded(items: Iterable[Item], parts: Mapping[str, Cut]) -> Iterator[Item]:
    for item in items:
        if isinstance(item.what, Composite):
            yield item._replace(what=item.what._replace(items=tuple(_expanded(item.what.items, parts))))
        elif item.name in parts:
            cut, event = parts[item.name], item.what.event
            tree = event.tree if isinstance(event, Event) else event
            inner = tuple(_items(tree.get("constituents"), cut.names))
            if cut.kind == "side":
                yield Item("", Composite(item.what.low, item.what.high, inner))
            else:
                yield from inner
        else:
            yield item


def _items(constituents: Any, names: Mapping[str, str]) -> Iterator[Item]:
    """Yield the items of the constituents of a composite event."""
    for one in constituents if isinstance(constituents, (list, tuple)) else ():
        low, high = _time(one["ts_lo"]), _time(one["ts_hi"])
        if "event" in one:
            name = str(one["name"])
            yield Item(names.get(name, name), Occurrence(low, high, one["event"]))
        else:
            yield Item("", Composite(low, high, tuple(_items(one["constituents"], names))))


def _time(value: Any) -> int:
    assert isinstance(value, datetime)
    return microseconds(value)
