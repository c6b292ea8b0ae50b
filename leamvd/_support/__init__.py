"""Compiling, checks of arguments, threads, memory: used by every room."""
