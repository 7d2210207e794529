"""Compiled functions called from Python: which calls are one program, what they return, what paces the loop around."""
