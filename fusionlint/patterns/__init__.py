"""What several rules recognise, in a folder for each question."""
