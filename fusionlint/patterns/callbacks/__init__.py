"""Calls from compiled code to Python: the loops that make them, what they hand over, and what the host does with it."""
