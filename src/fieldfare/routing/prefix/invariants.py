"""`check`: the invariants of every tree, for tests and for doubts."""

from __future__ import annotations

from fieldfare.routing.prefix.labels import splits
from fieldfare.routing.prefix.tree import ROOT, Tree


def check(tree: Tree) -> None:
    """Raise an AssertionError if a tree violates an invariant."""
    count = 0
    for id in (ROOT, *tree.preorder()):
        node = tree[id]
        count += 1
        assert node.gone is None
        assert len(set(node.children)) == len(node.children)
        assert node.kids == {tree.label(child): child for child in node.children}, "two siblings with the same label"
        for place, child in enumerate(node.children):
            assert (tree[child].parent, tree[child].place) == (id, place)
            label = tree.label(child)
            assert label.whole or splits(label.dimension, label.constraint)
            assert not label.constraint.is_empty
            if not label.whole and node.label is not None and node.label.dimension == label.dimension:
                wider = node.label.constraint
                assert wider >= label.constraint
                assert wider != label.constraint, "a node below one that asks the same"
        _check_siblings(tree, id)
    assert count == tree.size + 1


def _check_siblings(tree: Tree, id: int) -> None:
    """Check that siblings on the same attribute are disjoint, unless they are whole."""
    node = tree[id]
    listed = [child for children in node.split.values() for child in children]
    assert sorted(listed) == sorted(child for child in node.children if not tree.label(child).whole)
    for dimension, children in node.split.items():
        for place, child in enumerate(children):
            assert tree.label(child).dimension == dimension
            for other in children[:place]:
                overlap = tree.label(child).constraint.overlaps(tree.label(other).constraint)
                assert not overlap, f"{tree.label(child).filter} overlaps {tree.label(other).filter}"
