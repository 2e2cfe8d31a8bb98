"""Filters × filters: which filters must a neighbour know, and which stored queries and profiles meet?"""
