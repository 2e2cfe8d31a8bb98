"""What others wrote to hold us against. It lies beside the repository, or where FIELDFARE_SHARED says, or nowhere."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(os.environ.get("FIELDFARE_SHARED") or Path(__file__).parents[2] / "shared")
KIT = FOLDER / "conformance" / "cesql"
WORKLOADS = FOLDER / "bench" / "workloads.py"
NEEDED = {
    "filters/languages/test_cesql_conformance.py": ("the foreign CESQL kit", KIT),
    "matching/test_shared_workloads.py": ("the foreign workloads", WORKLOADS),
}
"""the tests that are nothing without it"""

ABSENT = {test: name for test, (name, path) in NEEDED.items() if not path.exists()}
