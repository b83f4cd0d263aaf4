"""Measurements of the simulator, each one in a process of its own."""
