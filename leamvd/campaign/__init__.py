"""Jobs: stored, resumed, run anywhere, verified; what ships. It knows no network and no study."""

from leamvd._support import checks

checks.needs("leamvd.campaign", "paper", "filelock", "loky", "pandas")
