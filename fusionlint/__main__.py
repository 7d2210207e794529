"""`python -m fusionlint`."""

from fusionlint.cli import called

called()
