"""All wire forms: client frames, link frames and messages, handover messages, journal entries; with versions."""
