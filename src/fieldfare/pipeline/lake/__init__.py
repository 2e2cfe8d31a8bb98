"""The event table on disk: commits, folders, compaction, and queries over the past."""
