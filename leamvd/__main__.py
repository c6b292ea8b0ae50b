"""``python -m leamvd``."""

from leamvd.cli import main

main()
