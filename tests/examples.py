"""`few`: how many examples a property tries that is slow by nature."""

from __future__ import annotations

from hypothesis import settings


def few(share: int) -> settings:
    """Try so many examples for each hundred that a cheap property tries: with the long profile there are more of them.

    `@settings(max_examples=…)` would be the same number in all profiles.
    """
    return settings(max_examples=max(1, settings().max_examples * share // 100))
