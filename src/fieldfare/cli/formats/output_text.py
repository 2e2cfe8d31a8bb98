"""Results of matching as text: a table of the first events, then the counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fieldfare.cli.formats.outcome import Result, Tally, counted
from fieldfare.cli.formats.values import printable, shown
from fieldfare.events import Event

_BUSIEST: Final = 5
_NAMES: Final = 6
"""names of filters that the table shows for an event"""


def print_table(shown: Sequence[Result], tally: Tally) -> None:
    """Print the first events with their matches, then the summary; in colour on a terminal, plain elsewhere."""
    console = Console(highlight=False)
    style = box.ROUNDED if console.is_terminal else None
    if shown:
        table = Table("event", "", "matched by", box=style, header_style="bold", pad_edge=bool(style), expand=True)
        table.columns[0].justify = "right"
        table.columns[1].ratio, table.columns[1].no_wrap = 3, True
        table.columns[2].ratio, table.columns[2].overflow = 2, "fold"
        for number, event, matches in shown:
            table.add_row(str(number), Text(printable(_event(event))), Text(printable(_names(matches))))
        console.print(table)
        if tally.events > len(shown):
            console.print(
                f"… and {counted(tally.events - len(shown), 'more event')} (--limit shows more, -o jsonl all)"
            )
        console.print()
    summary = Table.grid(padding=(0, 2))
    for label, value in _summary(tally):
        summary.add_row(f"[bold]{label}[/]", Text(value))
    console.print(summary)


def _summary(tally: Tally) -> list[tuple[str, str]]:
    per_event = tally.matches / tally.events if tally.events else 0.0
    rate = f", {tally.events / tally.seconds:,.0f} events/s" if tally.seconds and tally.events else ""
    busiest = tally.by_filter.most_common(_BUSIEST)
    rows = [
        ("events", f"{tally.events:,}"),
        ("filters", f"{tally.filters:,}"),
        ("matches", f"{tally.matches:,}"),
        ("per event", f"{per_event:.2f}"),
        ("matched nothing", counted(tally.unmatched, "event")),
        ("busiest filters", "\n".join(f"{count:,} × {printable(name)}" for name, count in busiest) or "none"),
        ("CPU time", f"{tally.seconds:.2f} s{rate}"),
    ]
    return [*rows, ("skipped", counted(tally.skipped, "bad event"))] if tally.skipped else rows


def _event(event: Event) -> str:
    return " ".join(f"{name}={value if isinstance(value, str) else shown(value)}" for name, value in event.tree.items())


def _names(matches: Sequence[str]) -> str:
    more = f" and {len(matches) - _NAMES} more" if len(matches) > _NAMES else ""
    return ", ".join(matches[:_NAMES]) + more if matches else "–"
