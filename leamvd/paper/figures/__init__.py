"""Records to matplotlib figures; nothing is computed here."""
