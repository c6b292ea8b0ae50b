"""``python -m leamvd_paper``."""

from leamvd_paper.cli import main

main()
