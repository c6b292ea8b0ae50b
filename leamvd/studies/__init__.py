"""Studies: from settings to jobs, from jobs to tables, and what of them is recorded."""

from leamvd._support import checks

checks.needs("leamvd.studies", "paper", "cma", "pooch", "requests", "sklearn")
