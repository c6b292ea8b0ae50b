"""The notebooks as programs, and the book rendered from them."""
