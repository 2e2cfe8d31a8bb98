"""Filters × events: which of many filters does an event match?"""
