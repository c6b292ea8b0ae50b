"""The paper's experiments: studies and the jobs that they consist of."""

from leamvd._support import checks

checks.needs("leamvd.experiments", "paper", "cma", "pooch", "requests", "sklearn")
