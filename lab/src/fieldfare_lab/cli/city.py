"""`fieldfare lab city`: a city with moving taxis, simulated, checked, and shown as a film."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldfare.cli.errors import reported

if TYPE_CHECKING:
    from fieldfare_lab.mobility.film import Film

_SHOWN = 5
"""number of violations that are printed"""


@reported()
def city(
    *,
    taxis: Annotated[int, typer.Option(min=1, metavar="N", help="Number of taxis.")] = 12,
    seconds: Annotated[float, typer.Option(min=1, metavar="S", help="Length of the simulated drive.")] = 120,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of all random numbers.")] = 1,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page that shows the run.", show_default=False)
    ] = None,
) -> None:
    """Let taxis drive through a city from antenna to antenna, and show that no event is lost.

    Each antenna is a broker. Taxis publish positions and subscribe to rides near by; some are in a tunnel for a while.
    Sessions follow by the handover protocols that lose nothing. Time is virtual, and the same seed gives the same run.
    The trace is checked against the specification; a violation gives exit code 1. The page needs only a browser.

    Examples:
        fieldfare lab city --html city.html
        fieldfare lab city --taxis 5 --seconds 30 --seed 2
        fieldfare lab city --taxis 30 --html crowded.html
    """
    from fieldfare_lab.mobility.film import record

    film = record(taxis, seconds, seed)
    for line in summary(film):
        typer.echo(line)
    if html is not None:
        from fieldfare_lab.cli.city_page import page

        html.write_text(page(film, "Taxis in a city"), "utf-8")
        typer.echo(f"written: {html}", err=True)
    if film.violations:
        raise typer.Exit(1)


def summary(film: Film) -> list[str]:
    """Return the lines that the command prints: counters, times of handovers, violations."""
    from fieldfare.cli.formats.outcome import counted
    from fieldfare.cli.formats.values import printable
    from fieldfare_lab.cli.city_page import headline, totals

    took = [one.done - one.time for one in film.handovers]
    lines = [headline(film), *(f"{name:<12}{number:>8,}" for name, number in totals(film))]
    if took:
        lines.append(
            f"a session follows its client in {1000 * sum(took) / len(took):.0f} ms, {1000 * max(took):.0f} ms at most"
        )
    lines.append(f"checker: {counted(len(film.violations), 'violation')}")
    shown = film.violations[:_SHOWN]
    return [
        *lines,
        *(printable(f"{film.trace[v.order].time - film.start:.2f} s: {v.rule}: {v.problem}") for v in shown),
    ]
