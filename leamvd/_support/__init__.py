"""Compiling, checks of arguments, threads: used by every room."""
