"""What a compiled step replaces, and whether it may write over that."""
