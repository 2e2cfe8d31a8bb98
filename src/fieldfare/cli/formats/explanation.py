"""The explanation of a filter, as text with drawings or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fieldfare.cli.formats.relations import Covering, Relation
from fieldfare.cli.formats.value_lines import draw, pieces, words
from fieldfare.cli.formats.values import printable, shown
from fieldfare.events import MISSING
from fieldfare.events.tags import tag
from fieldfare.filters import Filter, ValueSet
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import ELEMENTS, Constraint
from fieldfare.filters.diagnosis import BranchReport, Finding
from fieldfare.filters.expressions import UNCERTAIN, Compare, Field
from fieldfare.filters.literals import name
from fieldfare.filters.printer import render
from fieldfare.filters.strings import Language

_NARROWEST: Final = 40


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answers to all questions of a user about a filter."""

    filter: Filter
    coverings: Sequence[Covering]
    relations: Sequence[Relation]
    reports: Sequence[BranchReport] | None

    @property
    def matches(self) -> bool:
        """Tell whether the event matches; False without an event."""
        return any(report.ok for report in self.reports or ())


def show(found: Explanation) -> None:
    """Print an explanation, with a drawing of the values for each field."""
    console = Console(highlight=False)
    for covering in found.coverings:
        answer = "yes" if covering.holds else "no"
        verb = "covers" if covering.holds else "does not cover"
        _say(console, f"{answer}: {covering.wide} {verb} {covering.narrow}", "green" if covering.holds else "red")
        _say(console, f"  {covering.reason}")
    if not found.coverings:
        _say(console, str(found.filter), "bold")
        _show_branches(console, found.filter)
        _remark_on_fields(console, found.filter)
    if found.relations:
        console.print()
        console.print(_relations(found.relations, console))
    if found.reports is not None:
        console.print()
        _show_event(console, found)


def as_json(found: Explanation) -> str:
    """Return an explanation as JSON."""
    tree: dict[str, Any] = {
        "filter": str(found.filter),
        "branches": [
            {
                "text": render([branch]),
                "constraints": [_constraint(dimension, wanted) for dimension, wanted in branch.items()],
            }
            for branch in found.filter
        ],
        "coverings": [asdict(covering) for covering in found.coverings],
        "relations": [asdict(relation) for relation in found.relations],
    }
    if found.reports is not None:
        tree["event"] = {
            "matches": found.matches,
            "branches": [
                {"text": report.branch, "ok": report.ok, "findings": [_finding(one) for one in report.findings]}
                for report in found.reports
            ],
        }
    return json.dumps(tree, ensure_ascii=False, indent=2)


def _show_branches(console: Console, wanted: Filter) -> None:

    count = len(wanted.branches)
    for number, branch in enumerate(wanted, 1):
        console.print()
        if count > 1:
            _say(console, f"branch {number} of {count}", "dim")
        if not branch:
            _say(console, "every event matches")
            continue
        grid = Table.grid(padding=(0, 2))
        width = max(_NARROWEST, console.width - 24)
        for dimension, constraint in branch.items():
            _add_field(grid, dimension, constraint, width)
        console.print(grid)


def _remark_on_fields(console: Console, wanted: Filter) -> None:
    """Print a remark on comparisons of two fields: a user may have meant a text, and left out the quotes."""
    pairs = {
        (dimension.left.path, dimension.right.path): None
        for branch in wanted
        for dimension in branch
        if isinstance(dimension, Compare) and isinstance(dimension.left, Field) and isinstance(dimension.right, Field)
    }
    for left, right in pairs:
        console.print()
        _say(
            console, f"This compares two fields, {left} and {right}. A text would have single quotes: '{left}'.", "dim"
        )


def _add_field(grid: Table, dimension: Dimension, constraint: Constraint, width: int) -> None:

    grid.add_row(Text(_title(dimension), style="bold"), Text(render([Branch({dimension: constraint})]), style="cyan"))
    for label, lines in draw(constraint, width) if _is_drawable(dimension, constraint) else ():
        for at, line in enumerate(lines):
            grid.add_row(Text("" if at else label, style="dim"), Text(line, no_wrap=True))


def _is_drawable(dimension: Dimension, constraint: Constraint) -> bool:
    """Tell whether a drawing says more than the words; a comparison, or true and false, needs no drawing."""
    if isinstance(dimension, str):
        return True
    return not isinstance(dimension, Compare) and any(True for _ in constraint.values.kinds())


def _title(dimension: Dimension) -> str:
    return name(dimension) if isinstance(dimension, str) else dimension.text


def _relations(relations: Sequence[Relation], console: Console) -> Table:

    style = box.ROUNDED if console.is_terminal else None
    table = Table("filter", "", "relation", "merges into", box=style, header_style="bold", pad_edge=bool(style))
    for one in relations:
        if one.merger is None:
            merged = "too complex"
        elif one.perfect:
            merged = one.merger
        else:
            merged = f"{one.merger} (imperfect: {one.precision:.0%} wanted, estimated)"
        table.add_row(*(Text(printable(text)) for text in (one.name, one.other, one.relation, merged)))
    return table


def _show_event(console: Console, found: Explanation) -> None:
    _say(console, "the event matches" if found.matches else "the event does not match", "bold")
    for report in found.reports or ():
        _say(console, f"  {'✓' if report.ok else '✗'} {report.branch}", "green" if report.ok else "red")
        for one in report.failed:
            _say(console, f"      wanted {one.wanted}, but {one.dimension} is {shown(one.actual)}")


def _say(console: Console, text: str, style: str = "") -> None:

    console.print(Text(printable(text), style=style), soft_wrap=True)


def _constraint(dimension: Dimension, wanted: Constraint) -> dict[str, Any]:
    tree: dict[str, Any] = {
        "dimension": _title(dimension),
        "wanted": render([Branch({dimension: wanted})]),
        "values": _set(wanted.values),
    }
    if wanted.every != ELEMENTS:
        tree["every"] = _set(wanted.every)
    if wanted.some:
        tree["some"] = [_set(hit) for hit in sorted(wanted.some, key=repr)]
    return tree


def _set(values: ValueSet) -> dict[str, Any]:
    tree: dict[str, Any] = {"whole": words(values)}
    for kind, part in values.kinds():
        if isinstance(part, Language):
            tree[kind.value] = "by pattern"
        elif not part.is_full:
            tree[kind.value] = [
                {"low": tag(low), "high": tag(high), "closed": closed} for low, high, closed in pieces(part)
            ]
    return tree


def _finding(one: Finding) -> dict[str, Any]:
    if one.actual is MISSING or one.actual is UNCERTAIN:
        actual: dict[str, object] = {"missing" if one.actual is MISSING else "uncertain": True}
    else:
        actual = {"actual": tag(one.actual)}  # type: ignore[arg-type]  # the events hold only values
    return {"dimension": one.dimension, "wanted": one.wanted, "ok": one.ok, **actual}
