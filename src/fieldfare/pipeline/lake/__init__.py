"""The event table on disk: files, commits, versions, and queries over the past."""
