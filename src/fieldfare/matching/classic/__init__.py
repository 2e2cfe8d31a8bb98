"""Classic algorithms of matching: counting, decision tree, decision diagram, path automaton, brute force."""
