"""Programs for people who work on Fieldfare, shared with the tests: harnesses that kill, soak and measure.

Each runs by itself (`python -m tools.nodes.kills 200`), and a short form of most runs in the test suite. Tools import
neither tests nor pytest, so that a long run needs no test framework.
"""
