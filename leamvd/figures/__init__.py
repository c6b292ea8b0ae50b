"""Plain tables to matplotlib; nothing is computed."""

from leamvd._support import checks

checks.needs("leamvd.figures", "paper", "matplotlib", "pandas")
