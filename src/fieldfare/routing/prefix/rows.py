"""A tree as rows of numbers, one row a node: which number is what. `routing.prefix` writes them, kernels read them."""

from __future__ import annotations

from typing import Final

COLUMNS: Final = 5
KIDS_AT, KIDS, PARENT, PLACE, SHIFTED = range(COLUMNS)
"""where the children begin in the list of all children, how many they are; the parent, and which of its children it is;
since which number of a version its children have had their places"""
