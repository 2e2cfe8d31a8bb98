"""The machine that a node runs on, as far as it can be told from another one."""

from __future__ import annotations

import uuid
from pathlib import Path


def boot() -> str:
    """A name for the time since the machine was started, that no other machine has; not all systems have one."""
    told = Path("/proc/sys/kernel/random/boot_id")
    return told.read_text("ascii").strip() if told.is_file() else str(uuid.getnode())
