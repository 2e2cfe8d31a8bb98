"""The command `python -m tools.bars`."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tools.bars import history
from tools.bars.measure import BARS, ROUNDS, figure

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "benchmarks" / "history"


def measured(bars: Sequence[str], rounds: int) -> history.Entry:
    """Measure some bars; a bar whose packages are not installed is named on standard error and left out."""
    load = os.getloadavg()[0]
    figures = {}
    for bar in bars:
        started = time.monotonic()
        try:
            figures[bar] = figure(BARS[bar], rounds)
        except ModuleNotFoundError as error:
            print(f"{bar}: not measured: {error}", file=sys.stderr)
        else:
            print(f"{bar}: measured in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return history.Entry(
        time=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        commit=_git("rev-parse", "--short", "HEAD"),
        dirty=bool(_git("status", "--porcelain", "--", "src")),
        python=platform.python_version(),
        machine=_machine(),
        cores=os.cpu_count() or 1,
        load=round(load, 2),
        figures=figures,
    )


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True
    ).stdout.strip()


def _machine() -> str:
    """The model of the processor; the architecture where Linux does not say the model."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.bars", description="Speed, held against the last time.")
    parser.add_argument("--only", metavar="BARS", help=f"bars to measure, with commas between them: {', '.join(BARS)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"measured rounds of each bar ({ROUNDS})")
    parser.add_argument("--dry-run", action="store_true", help="write no entry")
    parser.add_argument(
        "--accept", action="store_true", help="write the entry although a bar is slower, or the machine busy"
    )
    given = parser.parse_args(arguments)
    bars = given.only.split(",") if given.only else list(BARS)
    if unknown := set(bars) - set(BARS):
        parser.error(f"there is no bar {min(unknown)}; there are {', '.join(BARS)}")
    entry = measured(bars, given.rounds)
    lines = history.compare(entry, history.load(FOLDER))
    print(history.table(lines))
    slower = any(line.is_slower for line in lines)
    if entry.was_busy:
        print(f"the machine was busy before the run (load {entry.load:.1f} on {entry.cores} cores): trust no alert")
    if not given.dry_run and entry.figures and (given.accept or not (slower or entry.was_busy)):
        print(f"written: {history.save(entry, FOLDER).relative_to(ROOT)}")
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
