"""The thesis on routing tables, measured again: experiments E1–E8, E13–E21, and how far each structure scales."""
