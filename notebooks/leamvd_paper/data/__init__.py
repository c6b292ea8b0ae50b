"""Images and test functions."""
