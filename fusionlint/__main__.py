"""`python -m fusionlint`."""

from fusionlint.cli import main

main()
