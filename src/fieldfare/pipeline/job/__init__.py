"""A declared pipeline: its settings, its plan, its run, its sinks and its reports."""
