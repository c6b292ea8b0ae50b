"""The paper's experiments: data sets, studies, records, comparisons, claims, figures."""

from leamvd._support import checks

checks.needs(
    "leamvd.paper", "paper", "cma", "filelock", "matplotlib", "pandas", "pooch", "psutil", "requests", "sklearn"
)
