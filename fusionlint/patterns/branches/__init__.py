"""`cond` and `switch`: what they ask, what their branches do, and how to write them as `where`."""
