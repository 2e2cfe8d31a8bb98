"""Other Pythons: a fast part of the tests under each version of Python that Fieldfare claims to support.

    python -m tools.pythons                        # 3.11, 3.12 and 3.13
    python -m tools.pythons 3.12 -- tests/events   # some versions, and other tests

An interpreter comes from PATH, or from the folder of pyenv; else from `uv python install`, with uv in a temporary
environment. A version that none of these has is "not to be had", which is no failure. Each version gets a temporary
environment with Fieldfare as a user would install it (`fieldfare[fast]`, built as a wheel), the laboratory, whose
workloads the tests use, and the packages that the tests need, in the locked versions. The exit code is 1 if an
installation or a test failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
VERSIONS: Final = ("3.11", "3.12", "3.13")
TESTS: Final = ("tests/events", "tests/filters", "tests/matching")
NEEDED: Final = ("cloudevents", "hypothesis", "pytest", "pytest-timeout", "pytest-xdist", "pyyaml")
"""packages that these tests need beside Fieldfare"""
PIN: Final = re.compile(r"^([A-Za-z0-9_.-]+==[^ \\]+)( ;[^\\]*)?", re.MULTILINE)
SUMMARY: Final = re.compile(r"^=*\s*((?:\d+ \w+(?:, )?)+) in [\d.]+s")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one version."""

    version: str
    status: str
    """`passed`, `failed` or `not to be had`"""
    detail: str
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.version:6} {self.status:14} {self.seconds:6.0f} s  {self.detail}"


def constraints(lock: str) -> str:
    """The pins of a lock file without their hashes, as a file of constraints for pip."""
    return "".join(f"{pin}{(marker or '').rstrip()}\n" for pin, marker in PIN.findall(lock))


def summary(output: str) -> str:
    """Pytest's last line without its frame: `12 passed, 1 skipped`; else the end of the output."""
    for line in reversed(output.splitlines()):
        if found := SUMMARY.match(line):
            return found[1]
    return " ".join(output.split())[-300:]


def candidates(version: str) -> Iterator[str]:
    """Commands that may be an interpreter of a version."""
    if found := shutil.which(f"python{version}"):
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from map(str, sorted(pyenv.glob(f"{version}*/bin/python"), reverse=True))


def is_version(command: str, version: str) -> bool:
    """Whether a command runs, is of a version, and can make environments; a shim of pyenv may do neither."""
    say = "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([command, "-c", say], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def interpreter(version: str, scratch: Path) -> tuple[str | None, str]:
    """An interpreter of a version, and where it is from; None and the reason if there is none."""
    for command in candidates(version):
        if is_version(command, version):
            return command, command
    try:
        return _fetched(version, scratch), "fetched by uv"
    except (subprocess.CalledProcessError, OSError) as error:
        said = getattr(error, "stderr", "") or str(error)
        return None, f"not on PATH, and uv says: {' '.join(said.split())[-200:]}"


def _fetched(version: str, scratch: Path) -> str:
    """An interpreter that uv fetches into a temporary folder."""
    uv = scratch / "uv" / "bin" / "uv"
    if not uv.exists():
        pinned = re.search(r"^UV_VERSION := (\S+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        _run(sys.executable, "-m", "venv", str(scratch / "uv"))
        _run(str(scratch / "uv" / "bin" / "pip"), "install", "-q", f"uv=={pinned[1]}" if pinned else "uv")
    folder = str(scratch / "pythons")
    _run(str(uv), "python", "install", "--no-bin", "--install-dir", folder, version)
    return next(map(str, Path(folder).glob(f"*{version}*/bin/python{version}")))


def _run(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def tried(version: str, tests: Sequence[str], scratch: Path) -> Outcome:
    """Install and test under one version."""
    started = time.monotonic()
    command, origin = interpreter(version, scratch)
    if command is None:
        return Outcome(version, "not to be had", origin, time.monotonic() - started)
    place = scratch / version
    pins = scratch / "constraints.txt"
    pins.write_text(constraints((ROOT / "locks" / "dev.txt").read_text(encoding="utf-8")), encoding="utf-8")
    try:
        _run(command, "-m", "venv", str(place))
        pip = (str(place / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check")
        _run(*pip, "-c", str(pins), f"{ROOT}[fast]", f"{ROOT / 'lab'}", *NEEDED)
    except subprocess.CalledProcessError as error:
        return Outcome(version, "failed", f"installing: {' '.join(error.stderr.split())[-300:]}", _since(started))
    pytest = [str(place / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    clean.setdefault("FIELDFARE_SHARED", str(ROOT.parent / "shared"))  # an installed laboratory looks beside itself
    done = subprocess.run(pytest, cwd=ROOT, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-6000:], done.stderr[-2000:], sep="\n", file=sys.stderr)
    found = f"{summary(done.stdout)} ({origin})"
    return Outcome(version, "failed" if done.returncode else "passed", found, _since(started))


def _since(started: float) -> float:
    return time.monotonic() - started


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: returns its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    tests = given[given.index("--") + 1 :] if "--" in given else list(TESTS)
    parser = argparse.ArgumentParser(prog="python -m tools.pythons", description="The fast tests under other Pythons.")
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION", help=f"such as {VERSIONS[-1]}")
    versions = parser.parse_args(given[: given.index("--")] if "--" in given else given).versions
    with tempfile.TemporaryDirectory(prefix="fieldfare-pythons-") as scratch:
        outcomes = []
        for version in versions:
            outcomes.append(tried(version, tests, Path(scratch)))
            print(outcomes[-1], flush=True)
            shutil.rmtree(Path(scratch) / version, ignore_errors=True)
    return int(any(outcome.status == "failed" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
