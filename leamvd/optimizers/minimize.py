"""The budgeted loop over any of the optimizers: callbacks, progress, history."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import OptimizeResult
from tqdm import tqdm

from leamvd._support import checks
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.random_search import RandomSearch

METHODS = ("lea-mvd", "cma-es", "sep-cma-es", "random")
"""What `minimize` can run."""


class Generation(NamedTuple):
    """One row of the history; in `OptimizeResult.history` each field is an array with one value a generation."""

    best: float  # best value so far
    mean: float  # of the generation's finite values
    worst: float  # of the generation's values
    std_norm: float  # norm of sigma (item R4); NaN where a method has none
    beta1: float
    beta2: float
    nfev: int


def optimizer(method: str, x0: ArrayLike | None = None, **options: Any) -> Optimizer:
    """Return the optimizer called `method`, one of `METHODS`; `options` go to its constructor.

    Raises
    ------
    ValueError, TypeError
        If there is no such method, or it does not take an option.
    """
    checks.choice("method", method, METHODS)
    if method == "lea-mvd":
        return LEAMVD(x0, **options)
    if method == "random":
        return RandomSearch(x0, **options)
    if x0 is None:
        raise ValueError(f"x0 must be given for method={method!r}, got None")
    return CMAES(x0, diagonal=method == "sep-cma-es", **options)


def minimize(
    fun: Callable[[NDArray[Any]], Any],
    x0: ArrayLike | None = None,
    *,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    vectorized: bool = False,
    method: str = "lea-mvd",
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    target: float | None = None,
    **options: Any,
) -> OptimizeResult:
    """Minimize a function of n variables.

    Parameters
    ----------
    fun : callable
        ``fun(x)`` of one point (n,), or of a whole generation (m, n), returning (m,), where `vectorized`.
    x0 : array_like, shape (n,), optional
        Where to start; without it, uniform in `bounds`.
    bounds : pair of float or array_like, optional
        Search limits, see `leamvd.LEAMVD`.
    vectorized : bool
        Whether `fun` takes all candidates of a generation at once, one a row.
    method : {"lea-mvd", "cma-es", "sep-cma-es", "random"}
        Which optimizer.
    callback : callable, optional
        Called after every generation, as scipy's: with ``intermediate_result=`` an OptimizeResult where its parameter
        has that name, otherwise with the best point. It stops the search by returning true or raising StopIteration.
    progress : bool
        Show a progress bar.
    target : float, optional
        Stop once the best value is at or below it.
    **options
        For the optimizer: `population_size`, `n_gen`, `seed`, `reading`, ...

    Returns
    -------
    scipy.optimize.OptimizeResult
        As `Optimizer.result`, with ``history``, a `Generation` of arrays. After Ctrl-C its status is "interrupted".

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, before `fun` is first called.
    Exception
        Whatever `fun` raises, carrying the best so far in its attribute ``result``.
    """
    if not callable(fun):
        raise TypeError(f"fun must be callable, got {fun!r:.100}")
    goal = None if target is None else checks.real("target", target)
    opt = optimizer(method, x0, **({} if bounds is None else {"bounds": bounds}), **options)
    history: list[Generation] = []
    bar = tqdm(total=opt.n_gen, desc=method, unit="gen", disable=not progress)
    try:
        with bar:
            while not opt.stop():
                X = opt.ask()
                F = np.asarray(fun(X) if vectorized else [fun(x) for x in X], dtype=np.float64)
                opt.tell(X, F)
                history.append(_generation(opt, F))
                bar.update()
                bar.set_postfix_str(f"best {opt.best_fun:.6g}", refresh=False)
                if goal is not None and opt.best_fun <= goal:
                    opt.halt("target", opt.best_fun)
                if callback is not None and _stops(callback, opt):
                    opt.halt("callback")
    except KeyboardInterrupt:
        opt.halt("interrupted")
    except Exception as error:
        error.result = _result(opt, history)  # type: ignore[attr-defined]
        error.add_note(f"the best of {opt.nfev} evaluations so far, {opt.best_fun:.6g}, is in this error's `result`")
        raise
    return _result(opt, history)


def _generation(opt: Optimizer, F: NDArray[np.float64]) -> Generation:
    finite = F[np.isfinite(F)]
    std_norm, beta1, beta2 = opt.step_sizes
    return Generation(
        best=opt.best_fun,
        mean=float(finite.mean()) if finite.size else np.inf,
        worst=float(np.max(F)) if finite.size == F.size else np.inf,
        std_norm=std_norm,
        beta1=beta1,
        beta2=beta2,
        nfev=opt.nfev,
    )


def _result(opt: Optimizer, history: list[Generation]) -> OptimizeResult:
    columns: Any = zip(*history, strict=True) if history else ([] for _ in Generation._fields)
    result: Any = opt.result
    fields: Any = map(np.array, columns)
    result.history = Generation(*fields)
    return cast(OptimizeResult, result)


def _stops(callback: Callable[..., Any], opt: Optimizer) -> bool:
    """Call scipy's kind of callback; True if it wants the search to end."""
    try:
        if "intermediate_result" in inspect.signature(callback).parameters:
            return bool(callback(intermediate_result=opt.result))
        return bool(callback(opt.result.x))
    except StopIteration:
        return True
