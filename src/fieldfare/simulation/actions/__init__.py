"""The actions of random runs, by family: a plan is a list of them.

Each family is a module with its actions as values (`Act`) and with `CHANCES`: the ways to draw an action, by weight. A
new family gets a module here and a place in `FAMILIES` of `plans`.
"""
