"""E9 to E12: the thesis' claims about moving subscribers, run again; brokers are counted, and time is simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from statistics import mean, pstdev
from typing import Any, Final, NamedTuple

from fieldfare.mobility.cost_bounds import Protocol, Terms, bounds
from fieldfare_lab.mobility.handovers import PROTOCOLS, Handover, Script, run, script
from fieldfare_lab.results import Claim, Curves, Result, Settings, curves_of, last

_THESIS: Final = {
    "ping/pong": "170 ± 26", "ping/pong, RP": "168 ± 22", "incomplete": "49 ± 16", "incomplete, RP": "48 ± 17",
    "complete": "39 ± 17", "complete, RP": "39 ± 17",
}  # fmt: skip
"""milliseconds in table 5.4 of the thesis"""
_BOUNDS: Final[dict[str, tuple[Protocol, bool]]] = {
    "ping/pong": ("generic", True), "ping/pong, RP": ("generic RP", True),
    "incomplete": ("acyclic", False), "incomplete, RP": ("acyclic RP", False),
    "complete": ("acyclic", True), "complete, RP": ("acyclic RP", True),
}  # fmt: skip
_ACYCLIC: Final = ("incomplete", "incomplete, RP", "complete", "complete, RP")
_FILTERS_NOTE: Final = (
    "The thesis does not name the filters of subscribers; in these runs all subscribe to everything that publishers "
    "advertise. With random ranges of values fewer filters are covered, and complete and incomplete are nearer to each "
    "other."
)


class _Run(NamedTuple):
    """The handovers of a script, carried out by a protocol."""

    protocol: str
    script: Script
    handovers: list[Handover]

    @property
    def bound(self) -> int:
        protocol, complete = _BOUNDS[self.protocol]
        brokers = len(self.script.tree.brokers)
        terms = Terms(brokers, to_point=min(self.script.depth, brokers - 2))
        return bounds(protocol, terms, complete=complete).upper

    def mean(self, of: str, first: int | None = None) -> float:
        return float(mean(getattr(one, of) for one in self.handovers[:first]))


def _runs(settings: Settings, protocols: Iterable[str] = PROTOCOLS, **options: Any) -> list[_Run]:
    """Run all replications with all protocols; all protocols get the same scripts."""
    scripts = [script(seed, size=settings.size(25), **options) for seed in _seeds(settings)]
    return [_Run(name, one, run(PROTOCOLS[name], one)) for name in protocols for one in scripts]


def handovers(settings: Settings) -> Result:
    """E9: 20 to 200 handovers between border brokers."""
    counts = tuple(dict.fromkeys(settings.size(n) for n in (20, 50, 100, 200)))
    runs = _runs(settings, subscribers=settings.size(50), handovers=counts[-1])
    rows = [
        {"protocol": one.protocol, "handovers": count, **_means(one, count)} for count in counts for one in runs
    ]  # fmt: skip
    updated, messages, latency = _all_curves(rows, "handovers")
    cost, time = partial(last, updated), partial(last, latency)
    spread = {name: _spread(runs, name) for name in PROTOCOLS}
    return Result(
        "E9", "Handovers between border brokers", _setup(settings, runs), (updated, messages, latency),
        (
            Claim(
                "every average is below its upper bound", all(one.mean("updated") <= one.bound for one in runs),
                "; ".join(f"{name} {cost(name):.0f} ≤ {_least(runs, name)}" for name in PROTOCOLS),
            ),
            Claim(
                "ping/pong costs most", max(PROTOCOLS, key=cost) == "ping/pong",
                f"{cost('ping/pong'):.0f}",
            ),
            Claim(
                "a rendezvous point makes ping/pong significantly cheaper",
                cost("ping/pong, RP") < 0.7 * cost("ping/pong"), f"{cost('ping/pong, RP'):.0f}",
            ),
            Claim(
                "but it still costs more than the acyclic protocols",
                all(cost("ping/pong, RP") > cost(name) for name in _ACYCLIC),
                "; ".join(f"{name} {cost(name):.1f}" for name in ("ping/pong, RP", *_ACYCLIC)),
            ),
            Claim(
                "complete costs less than incomplete",
                cost("complete") < cost("incomplete") and cost("complete, RP") < cost("incomplete, RP"),
                f"{cost('complete'):.1f} < {cost('incomplete'):.1f}; "
                f"with RP {cost('complete, RP'):.1f} < {cost('incomplete, RP'):.1f}",
            ),
            Claim(
                "complete with RP has the lowest cost, and the lowest latency but for 2 ms",
                all(cost("complete, RP") <= cost(name) for name in PROTOCOLS)
                and all(time("complete, RP") <= time(name) + 2 for name in PROTOCOLS),
                f"{cost('complete, RP'):.1f} brokers, {time('complete, RP'):.1f} ms",
            ),
            Claim(
                "latency: ping/pong > incomplete > complete (table 5.4)",
                time("ping/pong") > time("incomplete") > time("complete"),
                "; ".join(f"{name} {spread[name]} ms, there {_THESIS[name]}" for name in PROTOCOLS),
            ),
            _ratio("ping/pong / complete is between 3 and 6", time("ping/pong") / time("complete"), 3, 6),
            _ratio("incomplete / complete is between 1.1 and 1.5", time("incomplete") / time("complete"), 1.1, 1.5),
            Claim(
                "a rendezvous point changes the latency of acyclic protocols by 2 ms at most",
                all(abs(time(name) - time(f"{name}, RP")) <= 2 for name in ("incomplete", "complete")),
                f"incomplete {time('incomplete, RP') - time('incomplete'):+.1f}, "
                f"complete {time('complete, RP') - time('complete'):+.1f}",
            ),
            Claim(
                "and that of ping/pong", abs(time("ping/pong") - time("ping/pong, RP")) <= 2,
                f"{time('ping/pong, RP') - time('ping/pong'):+.1f}",
            ),
        ),
        f"{_FILTERS_NOTE} Our rendezvous point is the root of a hierarchy: every event goes to the root, pings too. So "
        "a ping needs no advertisement, and the first ping is not lost and not repeated: ping/pong saves the 100 ms of "
        "waiting and most of its brokers, and costs less than a flooded update, which visits every broker with the "
        "same filter. Without a rendezvous point our ping/pong takes longer than the thesis': the advertisement of the "
        "ping must reach the old broker, and the subscription must come back, before a ping gets through.",
    )  # fmt: skip


def everywhere(settings: Settings) -> Result:
    """E10: handovers between any brokers against handovers between border brokers."""
    count = settings.size(100)
    runs = {
        place: _runs(settings, subscribers=settings.size(50), handovers=count, border=place == "border")
        for place in ("border", "full")
    }  # fmt: skip
    rows = [
        {"protocol": one.protocol, "full": float(place == "full"), **_means(one)}
        for place, found in runs.items()
        for one in found
    ]
    curves = _all_curves(rows, "full")
    updated, _, latency = curves
    path = {place: mean(one.mean("path") for one in found) for place, found in runs.items()}
    orders = [sorted(PROTOCOLS, key=lambda name: updated.lines[name][place] or 0.0) for place in (0, 1)]
    return Result(
        "E10", "Handovers between any brokers", f"{_setup(settings, runs['full'])}; 0: border brokers, 1: any",
        curves,
        (
            Claim(
                "the same picture: protocols come in the same order of cost", orders[0] == orders[1],
                " < ".join(orders[1]),
            ),
            Claim(
                "border mobility has longer paths", path["border"] > path["full"],
                f"{path['border']:.1f} brokers between the two, and {path['full']:.1f}",
            ),
            Claim(
                "every average is below its upper bound",
                all(one.mean("updated") <= one.bound for found in runs.values() for one in found),
                "; ".join(f"{name} {last(updated, name):.0f}" for name in PROTOCOLS),
            ),
            Claim(
                "so handovers take longer between border brokers",
                all((line[0] or 0) > (line[1] or 0) for line in latency.lines.values()),
                "; ".join(f"{name} {line[0]:.0f} and {line[1]:.0f} ms" for name, line in latency.lines.items()),
            ),
        ),
        _FILTERS_NOTE,
    )  # fmt: skip


def subscribers(settings: Settings) -> Result:
    """E11: the cost of a handover with 1 to 100 subscribers."""
    counts = tuple(dict.fromkeys(max(1, round(n * settings.scale)) for n in (1, 5, 10, 20, 30, 40, 50, 75, 100)))
    rows: list[dict[str, Any]] = []
    for place in ("border", "full"):
        for count in counts:
            runs = _runs(
                settings, ("incomplete", "complete", "complete, RP"), subscribers=count,
                handovers=settings.size(100), border=place == "border",
            )  # fmt: skip
            rows += [{"protocol": f"{one.protocol}, {place}", "subscribers": count, **_means(one)} for one in runs]
    curves = _all_curves(rows, "subscribers")
    lines = curves[0].lines
    pinged = [
        mean(one.mean("updated") for one in _runs(settings, ["ping/pong"], subscribers=n, handovers=settings.size(20)))
        for n in (counts[0], counts[-1])
    ]
    peaks = {place: counts[_peak(lines[f"complete, {place}"])] for place in ("border", "full")}
    cheaper = [n for n, b, f in zip(counts, lines["complete, border"], lines["complete, full"], strict=True)
               if (b or 0) < (f or 0)]  # fmt: skip
    return Result(
        "E11", "More subscribers", f"{_setup(settings)}; {settings.size(100)} handovers each", curves,
        (
            Claim(
                "ping/pong does not depend on the number of subscribers", abs(pinged[0] - pinged[1]) < 0.1 * pinged[0],
                f"{pinged[0]:.0f} brokers with {counts[0]}, {pinged[1]:.0f} with {counts[-1]}",
            ),
            Claim(
                "incomplete: the more subscribers, the more brokers (the update is flooded)",
                all(_rises(lines[f"incomplete, {place}"]) for place in ("border", "full")),
                _list(lines["incomplete, border"]),
            ),
            *(
                Claim(
                    f"complete: rises, then falls; most in the low tens ({place})",
                    10 <= peaks[place] <= 40 and _falls_after(lines[f"complete, {place}"]),
                    f"most with {peaks[place]} (thesis: 20): {_list(lines[f'complete, {place}'])}",
                )
                for place in ("border", "full")
            ),
            Claim(
                "incomplete: border costs more than full",
                _below(lines["incomplete, full"][1:], lines["incomplete, border"][1:]),
                f"{_list(lines['incomplete, border'])}; full {_list(lines['incomplete, full'])}",
            ),
            Claim(
                "complete: border costs less than full", len(cheaper) == len(counts),
                f"with {', '.join(map(str, cheaper)) or 'no number of'} subscribers; "
                f"border {_list(lines['complete, border'])}, full {_list(lines['complete, full'])}",
            ),
        ),
        f"{_FILTERS_NOTE} Between border brokers covering applies more often, but where covering does not apply the "
        "path is longer; the number of subscribers decides which effect is stronger. Where all brokers are targets, "
        "covering prevails only with more subscribers, so costs fall later.",
    )  # fmt: skip


def publishers(settings: Settings) -> Result:
    """E12: the cost of a handover with 1 to 20 publishers."""
    counts, names = (1, 2, 5, 10, 20), _ACYCLIC
    rows = [
        {"protocol": one.protocol, "publishers": count, **_means(one)}
        for count in counts
        for one in _runs(
            settings, names, subscribers=settings.size(50), publishers=count, handovers=settings.size(100)
        )
    ]  # fmt: skip
    curves = _all_curves(rows, "publishers")
    lines = curves[0].lines
    growth = {name: (lines[name][-1] or 0) / (lines[name][0] or 1) for name in names}
    return Result(
        "E12", "More publishers", f"{_setup(settings)}; {settings.size(100)} handovers each", curves,
        (
            *(
                Claim(
                    f"{name}: grows with publishers, but moderately (by less than half from 1 to {counts[-1]})",
                    1.0 < growth[name] < 1.5, _list(lines[name]),
                )
                for name in ("incomplete", "complete")
            ),
            Claim(
                "with a rendezvous point the number of publishers does not matter",
                all(abs(growth[name] - 1) < 0.05 for name in ("incomplete, RP", "complete, RP")),
                "; ".join(f"{name} {_list(lines[name])}" for name in ("incomplete, RP", "complete, RP")),
            ),
        ),
        _FILTERS_NOTE,
    )  # fmt: skip


EXPERIMENTS: Final[dict[str, Callable[[Settings], Result]]] = {
    "E9": handovers, "E10": everywhere, "E11": subscribers, "E12": publishers,
}  # fmt: skip


def _setup(settings: Settings, runs: Sequence[_Run] = ()) -> str:
    clients = f"{settings.size(50)} subscribers, 1 publisher; " if runs else ""
    return (
        f"{4 * settings.size(25)} routers in 4 areas as a tree; {clients}25.7 ms between the farthest two, "
        "2 ms at each broker, a lost ping repeated after 100 ms"
    )


def _seeds(settings: Settings) -> range:
    return range(settings.seed, settings.seed + settings.replications)


def _means(one: _Run, first: int | None = None) -> dict[str, float]:
    return {
        "updated": one.mean("updated", first),
        "messages": one.mean("messages", first),
        "latency": 1000 * one.mean("latency", first),
    }


def _all_curves(rows: Sequence[dict[str, Any]], x: str) -> tuple[Curves, Curves, Curves]:
    updated, messages, latency = (
        curves_of(rows, title=title, x=x, line="protocol", value=value)
        for value, title in (
            ("updated", "brokers updated a handover"), ("messages", "messages a handover"), ("latency", "latency (ms)"),
        )
    )  # fmt: skip
    return updated, messages, latency


def _spread(runs: Iterable[_Run], name: str) -> str:
    times = [1000 * one.latency for run in runs if run.protocol == name for one in run.handovers]
    return f"{mean(times):.0f} ± {pstdev(times):.0f}"


def _least(runs: Iterable[_Run], name: str) -> int:
    """The smallest upper bound among the runs of a protocol."""
    return min(run.bound for run in runs if run.protocol == name)


def _ratio(text: str, value: float, low: float, high: float) -> Claim:
    return Claim(f"latency: {text}", low <= value <= high, f"{value:.2f}")


def _peak(line: Sequence[float | None]) -> int:
    return max(range(len(line)), key=lambda place: line[place] or 0.0)


def _falls_after(line: Sequence[float | None]) -> bool:
    return 0 < _peak(line) < len(line) - 1


def _rises(line: Sequence[float | None]) -> bool:
    return all((a or 0) <= (b or 0) for a, b in pairwise(line))


def _below(line: Sequence[float | None], other: Sequence[float | None]) -> bool:
    return all((a or 0) < (b or 0) for a, b in zip(line, other, strict=True))


def _list(line: Iterable[float | None]) -> str:
    return ", ".join("-" if value is None else f"{value:.1f}" for value in line)
