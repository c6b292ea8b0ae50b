"""The paper, one notebook per section."""
