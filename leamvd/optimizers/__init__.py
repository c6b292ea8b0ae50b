"""LEA-MVD and the baselines, behind one interface: ask, tell, stop, result."""
