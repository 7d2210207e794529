"""What a value is: an array, a number or a key, of how many numbers, a mask, a matrix, known to a trace; and where
Python asks for it."""
