"""Draw the states of a handover: `python -m tools.handover_diagram` writes two pictures and the table of the page.

Arrows and labels come from `fieldfare.core.handover_table`; only the places of the states are chosen here. The first
picture shows a session between source and target, the second picture the states with a replica. The files are SVG
without fonts, scripts or links, as those of `tools.diagrams`. The table below the pictures has all pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import hypot
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from fieldfare.core.handover_table import IGNORED, TRANSITIONS, HandoverInput, HandoverState

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / "docs" / "explanation" / "img"
PAGE: Final = ROOT / "docs" / "explanation" / "mobility.md"
BEGIN, END = "<!-- handover table -->\n", "<!-- end of the handover table -->\n"
WIDTH, HEIGHT = 150, 40
"""of a state, in pixels"""
LINE: Final = 14
STYLE: Final = (
    "text{font:12px system-ui,sans-serif;fill:#1f2d3d;text-anchor:middle}.state{font-weight:600;font-size:13px}"
    ".label{fill:#3b4b5b;paint-order:stroke;stroke:#f7f9fb;stroke-width:5px;stroke-linejoin:round}"
    "rect{fill:#fff;stroke:#7a8fa3;stroke-width:1.4}.usable{fill:#e3f1e4}.path{stroke:#7a8fa3;stroke-width:1.5;fill:none}"
)
Edge: TypeAlias = tuple[HandoverState, HandoverState]
_S = HandoverState


class Shape(NamedTuple):
    """Form of an arrow: distance of the bend from the straight line, and the place of the label on the way."""

    bend: float = 18
    label: float = 0.5


class Picture(NamedTuple):
    """A picture: the places of the states, and the arrows with another form than the usual."""

    title: str
    size: tuple[int, int]
    places: Mapping[HandoverState, tuple[int, int]]
    shapes: Mapping[Edge, Shape]
    about: frozenset[HandoverState] = frozenset(HandoverState)
    """At least one end of every arrow is one of these states."""


PICTURES: Final[Mapping[str, Picture]] = {
    "handover": Picture(
        "States of a session at a node during a handover",
        (1000, 650),
        {
            _S.ELSEWHERE: (500, 40),
            _S.REQUESTED: (110, 210),
            _S.ARRIVING: (110, 410),
            _S.HERE: (500, 550),
            _S.FROZEN: (890, 130),
            _S.READY: (890, 330),
            _S.DEPARTING: (890, 550),
        },
        {
            (_S.ELSEWHERE, _S.HERE): Shape(-32, 0.66),
            (_S.HERE, _S.ELSEWHERE): Shape(-32, 0.55),
            (_S.REQUESTED, _S.ELSEWHERE): Shape(40, 0.5),
            (_S.ELSEWHERE, _S.REQUESTED): Shape(14, 0.6),
            (_S.ARRIVING, _S.ELSEWHERE): Shape(-10, 0.3),
            (_S.REQUESTED, _S.HERE): Shape(30, 0.42),
            (_S.HERE, _S.REQUESTED): Shape(8, 0.42),
            (_S.ARRIVING, _S.HERE): Shape(14, 0.45),
            (_S.DEPARTING, _S.REQUESTED): Shape(30, 0.34),
            (_S.REQUESTED, _S.DEPARTING): Shape(30, 0.62),
            (_S.ARRIVING, _S.DEPARTING): Shape(135, 0.5),
            (_S.DEPARTING, _S.ELSEWHERE): Shape(20, 0.62),
            (_S.HERE, _S.DEPARTING): Shape(10, 0.5),
            (_S.DEPARTING, _S.HERE): Shape(46, 0.55),
            (_S.READY, _S.FROZEN): Shape(30, 0.5),
            (_S.FROZEN, _S.READY): Shape(30, 0.5),
        },
        frozenset(HandoverState) - {_S.REPLICA, _S.REPLICA_REQUESTED},
    ),
    "handover-replica": Picture(
        "States of a replica at its holder",
        (1000, 500),
        {
            _S.ELSEWHERE: (160, 40),
            _S.REPLICA: (160, 250),
            _S.REPLICA_REQUESTED: (560, 250),
            _S.REQUESTED: (560, 40),
            _S.ARRIVING: (890, 40),
            _S.DEPARTING: (300, 450),
            _S.HERE: (760, 450),
        },
        {
            (_S.ELSEWHERE, _S.REPLICA): Shape(46, 0.28),
            (_S.REPLICA, _S.ELSEWHERE): Shape(46, 0.42),
            (_S.REPLICA, _S.REPLICA_REQUESTED): Shape(24, 0.5),
            (_S.REPLICA_REQUESTED, _S.REPLICA): Shape(50, 0.5),
            (_S.REPLICA, _S.HERE): Shape(18, 0.6),
        },
        frozenset({_S.REPLICA, _S.REPLICA_REQUESTED}),
    ),
}


def edges(picture: Picture) -> dict[Edge, list[HandoverInput]]:
    """Return the changes of state in a picture, each with the inputs."""
    found: dict[Edge, list[HandoverInput]] = {}
    for state, row in TRANSITIONS.items():
        for given, next_states in row.items():
            for after in next_states:
                shown = {state, after} <= picture.places.keys() and {state, after} & picture.about
                if shown and after is not state:
                    found.setdefault((state, after), []).append(given)
    return found


def svg(picture: Picture) -> str:
    """Return a picture as SVG."""
    width, height = picture.size
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"',
        ' role="img">',
        f"<title>{escape(picture.title)}</title><style>{STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L10 5L0 10z" fill="#7a8fa3"/></marker></defs>',
        f'<rect x="0" y="0" width="{width}" height="{height}" style="fill:#f7f9fb;stroke:none" rx="6"/>',
    ]
    drawn = [_arrow(picture, edge, inputs) for edge, inputs in edges(picture).items()]
    parts += [path for path, _ in drawn] + [label for _, label in drawn]
    for state, (x, y) in picture.places.items():
        usable = ' class="usable"' if HandoverInput.USE in TRANSITIONS[state] else ""
        parts.append(
            f'<rect{usable} x="{x - WIDTH // 2}" y="{y - HEIGHT // 2}" width="{WIDTH}" height="{HEIGHT}" rx="7"/>'
        )
        parts.append(f'<text class="state" x="{x}" y="{y + 5}">{escape(state.value)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _arrow(picture: Picture, edge: Edge, inputs: list[HandoverInput]) -> tuple[str, str]:
    """Return the path of an arrow, and the label: a line for each input."""
    (x, y), (to_x, to_y) = picture.places[edge[0]], picture.places[edge[1]]
    bend, place = picture.shapes.get(edge, Shape())
    length = hypot(to_x - x, to_y - y)
    middle = (x + to_x) / 2 - 2 * bend * (to_y - y) / length, (y + to_y) / 2 + 2 * bend * (to_x - x) / length
    begin, end = _border((x, y), middle), _border((to_x, to_y), middle)
    path = f"M{begin[0]:.0f} {begin[1]:.0f}Q{middle[0]:.0f} {middle[1]:.0f} {end[0]:.0f} {end[1]:.0f}"
    at_x, at_y = (
        (1 - place) ** 2 * begin[axis] + 2 * place * (1 - place) * middle[axis] + place**2 * end[axis]
        for axis in (0, 1)
    )
    first = at_y - LINE * (len(inputs) - 1) / 2 + 4
    lines = "".join(
        f'<tspan x="{at_x:.0f}" y="{first + LINE * number:.0f}">{escape(given.value)}</tspan>'
        for number, given in enumerate(inputs)
    )
    return f'<path class="path" d="{path}" marker-end="url(#tip)"/>', f'<text class="label">{lines}</text>'


def _border(center: tuple[float, float], towards: tuple[float, float]) -> tuple[float, float]:
    """Return the point of a state's frame on the line from the center to another point."""
    dx, dy = towards[0] - center[0], towards[1] - center[1]
    share = min((WIDTH / 2 + 2) / abs(dx) if dx else 9e9, (HEIGHT / 2 + 2) / abs(dy) if dy else 9e9)
    return center[0] + dx * share, center[1] + dy * share


def table() -> str:
    """Return the table of all states and inputs as Markdown."""
    head = [_row("input", *(state.value for state in HandoverState)), "|---" * (len(HandoverState) + 1) + "|"]
    rows = [_row(given.value, *(_cell(state, given) for state in HandoverState)) for given in HandoverInput]
    return "\n".join([*head, *rows, ""])


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(state: HandoverState, given: HandoverInput) -> str:
    """Return nothing for an error, a dot for an ignored input, `=` for the same state, or the next states."""
    next_states = TRANSITIONS[state].get(given)
    if next_states is None:
        return ""
    if next_states is IGNORED:
        return "·"
    return ", ".join("=" if after is state else after.value for after in next_states)


def main() -> None:
    """Write the pictures and the table."""
    for name, picture in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(svg(picture))
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    PAGE.write_text(before + begin + "\n" + table() + "\n" + end + after)


if __name__ == "__main__":
    main()
