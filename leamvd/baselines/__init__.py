"""The rivals, behind the same ask, tell, stop and result."""
