"""The columns of a tree as rows of numbers, a row for each node. `flat_tree` writes the rows, `kernels` read them."""

from __future__ import annotations

from typing import Final

COLUMNS: Final = 5
KIDS_AT, KIDS, PARENT, PLACE, SHIFTED = range(COLUMNS)
"""where the children begin in the list of all children, how many they are; the parent, and which of its children it is;
since which number of a version its children have had their places"""
