"""Nodes, modes, hooks, version counters, and the run of a backward."""
