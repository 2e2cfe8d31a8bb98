"""Random runs of networks whose clients move: subscribers, publishers, relocations and event channels."""
