"""Identity of the machine that a node runs on, to tell a copied folder from the original."""

from __future__ import annotations

import uuid
from pathlib import Path


def boot() -> str:
    """Return a name of the present boot of this machine; on systems without boot ids, a name of the machine."""
    told = Path("/proc/sys/kernel/random/boot_id")
    return told.read_text("ascii").strip() if told.is_file() else str(uuid.getnode())
