"""`fieldfare bench patterns`: events for each CPU second with many patterns, beside Siddhi."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldfare.cli.errors import InputError, reported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from fieldfare_lab.bench.pattern_contest import PatternRow


@reported()
def command(
    *,
    patterns: Annotated[str, typer.Option(metavar="N,N,...", help="Numbers of patterns.")] = "100,1000,10000",
    shape: Annotated[str, typer.Option(metavar="NAME,...", help="Shapes of patterns. [default: all five]")] = "",
    events: Annotated[int, typer.Option(min=500, metavar="N", help="Number of events in a round.")] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of rounds; the best counts.")] = 3,
    to_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")] = None,
) -> None:
    """Measure detectors of many patterns, beside Siddhi, the library for complex event processing in Java.

    Shapes are sequence (a followed by b within 10 s), keys (for each card), iteration (at least 3 a followed by b),
    absence (no b within 2 s of a), and choice (a followed by b or c). Ten patterns concern the same kind of events
    with other thresholds. The answers are compared first; an engine with other answers is WRONG. A slow engine gets
    fewer events. Siddhi needs Java and its jars, which `python -m tools.servers` fetches; it is left out otherwise.

    Examples:
        fieldfare bench patterns --patterns 100 --shape sequence --events 2000
        fieldfare bench patterns --shape keys,absence --patterns 1000
        fieldfare bench patterns --json patterns.json
    """
    import msgspec
    from rich.console import Console

    from fieldfare.cli.progress import steps
    from fieldfare_lab.bench import pattern_contest
    from fieldfare_lab.bench.pattern_workloads import SHAPES

    shapes = shape.split(",") if shape else list(SHAPES)
    if unknown := set(shapes) - set(SHAPES):
        raise InputError("--shape", f"there is no shape {min(unknown)!r}; there are {', '.join(SHAPES)}")
    try:
        sizes = [int(size) for size in patterns.split(",")]
    except ValueError:
        raise InputError("--patterns", f"numbers with commas between them, not {patterns!r}") from None
    if min(sizes) < 1:
        raise InputError("--patterns", "at least one pattern")
    found: list[PatternRow] = []
    engines = 2 if pattern_contest.siddhi_is_there() else 1
    with steps(len(shapes) * len(sizes) * engines) as step:
        for one in shapes:
            for size in sizes:
                found += pattern_contest.measure(one, size, events, rounds, step)
    Console().print(_table(found))
    if engines == 1:
        typer.echo("not measured: Siddhi (needs java, and the jars of `python -m tools.servers`)", err=True)
    if to_json is not None:
        to_json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))


def _table(found: Sequence[PatternRow]) -> Table:
    from rich.table import Table

    made = Table(
        "shape", "patterns", "engine", "answers", "matches", "ready, CPU s", "events per CPU s", "Fieldfare is"
    )
    ours = {(one.shape, one.patterns): one.rate for one in found if one.engine == "Fieldfare"}
    for one in found:
        factor = ours[one.shape, one.patterns] / one.rate if one.rate else float("inf")
        beside = "" if one.engine == "Fieldfare" else f"{factor:,.1f} x" if one.right else ""
        answers = one.trouble or ("right" if one.right else "WRONG")
        cells = (f"{one.matches:,}", f"{one.ready:.1f}", f"{one.rate:,.0f}")
        made.add_row(one.shape, f"{one.patterns:,}", one.engine, answers, *cells, beside)
    return made
