"""How code is written: the parts of a call and of an index, what a name was written with, where a value goes, and how a
fix writes."""
