"""The compiled side: what made a value that crosses memory, who reads it, and whose line it is."""
