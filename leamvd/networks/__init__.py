"""Restricted Boltzmann machines, what trains them, and the error that the optimizers minimize.

`RBM`, `DBN` and `DBNClassifier` are estimators of scikit-learn's kind; scikit-learn is imported
when one of them is.
"""

from typing import Any

from leamvd._support import checks


def __getattr__(name: str) -> Any:
    """Return an estimator, imported as late as this, since its base class is scikit-learn's."""
    if name not in ("DBN", "DBNClassifier", "RBM"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    checks.needs(f"{__name__}.{name}", "leamvd[sklearn]", "sklearn")
    from leamvd.networks import estimators

    return getattr(estimators, name)
