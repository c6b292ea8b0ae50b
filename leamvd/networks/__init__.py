"""Restricted Boltzmann machines, what trains them, and the error that the optimizers minimize."""
