"""Statistics of events: which values attributes have, and how many events each filter lets pass."""
