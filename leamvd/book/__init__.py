"""The notebooks as programs, and the book rendered from them."""

from leamvd._support import checks

checks.needs("leamvd.book", "paper", "filelock", "pandas")
