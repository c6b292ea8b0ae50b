"""Notebooks as programs, and the book that shows what they have shown."""
