"""The paper's experiments: one file for each section of the book, and below them what sections
share.
"""
