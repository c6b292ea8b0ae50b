"""The executable edition of LEA-MVD's paper: its experiments, their data, and the book."""
