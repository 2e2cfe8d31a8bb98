"""`fieldfare top`: rates, queues and links of an overlay in the terminal, updated every second."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldfare.cli.errors import InputError, reported
from fieldfare.cli.http import DEFAULT_NODE, NodeOption, TokenOption, fetch, quoted

if TYPE_CHECKING:
    from rich.console import RenderableType

_BARS = " ▁▂▃▄▅▆▇█"


@reported()
def command(
    *,
    node: NodeOption = DEFAULT_NODE,
    token: TokenOption = "",
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Seconds between two updates.")] = 1.0,
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of updates after which to end.", show_default=False)
    ] = None,
) -> None:
    """Watch a node and its overlay: rates, queues, sessions, links. Ctrl-C ends the command.

    Examples:
        fieldfare top
        fieldfare top --node ws://127.0.0.1:7401 --count 1
    """
    from rich.console import Console
    from rich.live import Live

    console = Console()
    history: dict[str, list[float]] = {}
    looked = 0
    try:
        with Live(console=console, screen=console.is_terminal and count is None, auto_refresh=False) as live:
            while True:
                live.update(_view(node, token, history), refresh=True)
                looked += 1
                if looked == count:
                    return
                time.sleep(every)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _view(node: str, token: str, history: dict[str, list[float]]) -> RenderableType:
    """Return the table of nodes and the table of links, as the first node knows the overlay."""
    from rich.console import Group
    from rich.table import Table

    first = fetch(node, "/admin/overview", token)
    overviews = [first, *_others(first, node, token)]
    nodes = Table(box=None, pad_edge=False, header_style="bold")
    for title in (
        "node",
        "events/s",
        "",
        "delivered/s",
        "busy",
        "sessions",
        "waiting",
        "filters",
        "table",
        "log",
        "MB",
    ):
        nodes.add_column(title, justify="left" if title in ("node", "") else "right")
    for one in overviews:
        if "rates" not in one:
            nodes.add_row(one["name"], "[red]does not answer")
            continue
        rates = one["rates"]
        past = history.setdefault(one["name"], [])
        past.append(rates["events_in"])
        del past[:-30]
        nodes.add_row(
            one["name"],
            f"{rates['events_in']:,.0f}",
            f"[cyan]{sparkline(past)}",
            f"{rates['deliveries']:,.0f}",
            f"{100 * rates['busy']:.0f} %",
            f"{one['here']:,}/{one['sessions']:,}",
            f"{one['pending']:,}",
            f"{one['subscriptions']:,}",
            f"{one['table']:,}",
            f"{one['log']['last']:,}",
            f"{one['memory'] / 1e6:,.0f}",
        )
    links = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("link", "is", "waiting", "events out", "in", "control out", "in"):
        links.add_column(title, justify="left" if title in ("link", "is") else "right")
    for one in overviews:
        for link in one.get("links", ()):
            traffic = link["traffic"]
            links.add_row(
                f"{one['name']} → {link['name']}",
                "[green]up" if link["up"] else "[red]away",
                f"{link['outbox']:,}",
                *(f"{traffic.get(key, 0):,}" for key in ("events_out", "events_in", "tells_out", "tells_in")),
            )
    return Group(nodes, "", links) if links.row_count else nodes


def _others(first: dict[str, Any], node: str, token: str) -> list[dict[str, Any]]:
    """Fetch the overviews of the other nodes through the first: a token must not go to addresses that nodes name."""
    found = []
    for name in sorted(first["overlay"]):
        if name != first["name"]:
            try:
                found.append(fetch(node, f"/admin/nodes/{quoted(name)}", token))
            except InputError:
                found.append({"name": name})
    return found


def sparkline(values: list[float]) -> str:
    """Return values as a line of bars, the largest value as a full block.

    >>> sparkline([0, 5, 10])
    ' ▄█'
    """
    most = max(values, default=0.0) or 1.0
    return "".join(_BARS[round(value / most * (len(_BARS) - 1))] for value in values)
