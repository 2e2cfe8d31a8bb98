"""Progress bars on standard error for long work: the count, the rate and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

_T = TypeVar("_T")


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} events/s" if speed else "")


def tracked(items: Iterable[_T], total: Callable[[], int | None]) -> Iterator[_T]:
    """Yield the items, with a bar that counts them; without a terminal there is no bar.

    `total` is called only for a bar, because a count of the items may take long.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield from items
        return
    columns = (BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield from progress.track(items, total=total())


@contextmanager
def steps(total: int) -> Iterator[Callable[[str], None]]:
    """Show a bar with the name of the present step, and yield a function that begins the next step."""
    console = Console(stderr=True)
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=total)
        yield lambda what: progress.update(task, advance=1, description=what)
