"""Filters × events: which of many filters does an event match?"""

from fieldfare.matching.base import Matcher
from fieldfare.matching.bdd import DecisionDiagram
from fieldfare.matching.brute import BruteForce
from fieldfare.matching.counting import Counting
from fieldfare.matching.tree import DecisionTree

__all__ = ["BruteForce", "Counting", "DecisionDiagram", "DecisionTree", "Matcher"]
