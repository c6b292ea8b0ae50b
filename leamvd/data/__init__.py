"""Images and test functions."""

from leamvd._support import checks

checks.needs("leamvd.data", "paper", "pooch", "requests", "sklearn")
