"""Tables to tables: paired differences, comparison, claims and their rules."""

from leamvd._support import checks

checks.needs("leamvd.analysis", "paper", "filelock", "pandas")
