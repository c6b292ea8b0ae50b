"""The paper's experiments: training a layer, searching, measuring what comes of it, each a job."""

from leamvd._support import checks

checks.needs("leamvd.experiments", "paper", "cma", "pooch", "requests", "sklearn")
