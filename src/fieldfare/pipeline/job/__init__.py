"""Pipelines declared in a file: settings, plan, run, subscriptions and reports."""
