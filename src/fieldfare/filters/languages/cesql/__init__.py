"""CloudEvents SQL: syntax, evaluation, and translation into filters."""
