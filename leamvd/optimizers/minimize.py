"""The budgeted loop over any of the optimizers: callbacks, progress, history."""

import inspect
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult
from tqdm import tqdm

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd.optimizers.base import BoundsLike, Optimizer
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.random_search import RandomSearch
from leamvd.optimizers.reading import Reading

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
    fun: Callable[..., Any],
    x0: ArrayLike | None = None,
    *,
    bounds: BoundsLike | None = None,
    vectorized: bool = False,
    method: str = "lea-mvd",
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    target: float | None = None,
    args: tuple[Any, ...] = (),
    constraints: Any = (),
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    **options: Any,
) -> OptimizeResult:
    """Minimize a function of n variables.

    It can be the method of `scipy.optimize.minimize`: ``scipy.optimize.minimize(fun, x0, method=leamvd.minimize)``.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` of one point (n,), which `fun` may keep; or, where `vectorized`, of a whole generation (m, n),
        returning (m,). A generation is a read-only view that the next one overwrites: copy what is to be kept.
    x0 : array_like, shape (n,), optional
        Start solution; without it, the first generation is drawn uniformly in `bounds`.
    bounds : scipy.optimize.Bounds, pair (low, high) of float or array_like, or n pairs (low_i, high_i), optional
        Search limits, which every point keeps, unless `reading` says otherwise (item R15).
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
    args : tuple
        Passed on to `fun`; what is not a tuple is its only element.
    constraints : sequence
        Has to be empty: there is no method here that keeps constraints.
    jac, hess, hessp : object
        Not used, for no method here takes derivatives; a warning says so.
    **options
        For the optimizer: `population_size`, `n_gen`, `sigma0`, `seed`, `reading`, ...

    Returns
    -------
    scipy.optimize.OptimizeResult
        As `Optimizer.result`, with ``history``, a `Generation` of arrays. After Ctrl-C its status is "interrupted".

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, before `fun` is first called.
    Exception
        Whatever `fun` raises, carrying the best so far in its attribute ``result`` if it takes attributes.
    """
    if not callable(fun):
        raise TypeError(f"fun must be callable, got {fun!r:.100}")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable, got {callback!r:.100}")
    if constraints is not None and (not hasattr(constraints, "__len__") or len(constraints)):
        raise ValueError(
            f"constraints must be empty, since no method here keeps any but bounds, got {constraints!r:.100}"
        )
    for name, derivatives in (("jac", jac), ("hess", hess), ("hessp", hessp)):
        if derivatives is not None:
            warnings.warn(f"{name} is not used: no method here takes derivatives", RuntimeWarning, stacklevel=2)
    goal = None if target is None else checks.real("target", target)
    args = args if isinstance(args, tuple) else (args,)
    if bounds is not None:
        options["bounds"] = bounds
        if method == "lea-mvd" and options.get("reading") is None:
            options["reading"] = Reading(limits="clip")
    opt = optimizer(method, x0, **options)
    history: list[Generation] = []
    F = np.empty(0)
    try:
        with tqdm(total=opt.n_gen, desc=method, unit="gen", disable=not progress) as bar:
            while not opt.stop():
                X = opt.ask()
                values = fun(X, *args) if vectorized else [fun(x.copy(), *args) for x in X]
                F = checks.numbers("fun's values", values, shape=(len(X),), dtype=np.float64)
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
        with suppress(Exception):  # some exceptions take no attributes
            error.result = _result(opt, history, F)  # type: ignore[attr-defined]
            error.add_note(
                f"the best of {opt.nfev} evaluations so far, {opt.best_fun:.6g}, is in this error's `result`"
            )
        raise
    return _result(opt, history, F)


def _generation(opt: Optimizer, F: Array) -> Generation:
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


def _result(opt: Optimizer, history: list[Generation], F: Array) -> OptimizeResult:
    """Return the result, with the generation of the values `F` even if Ctrl-C came before its line of the history."""
    told = history if len(history) == opt.generation else [*history, _generation(opt, F)]
    columns: Any = zip(*told, strict=True) if told else ([] for _ in Generation._fields)
    result: Any = opt.result
    fields: Any = map(np.array, columns)
    result.history = Generation(*fields)
    return cast(OptimizeResult, result)


def _stops(callback: Callable[..., Any], opt: Optimizer) -> bool:
    """Call scipy's kind of callback; True if it wants the search to end."""
    try:
        if _takes_result(callback):
            return bool(callback(intermediate_result=opt.result))
        return bool(callback(opt.result.x))
    except StopIteration:
        return True


def _takes_result(callback: Callable[..., Any]) -> bool:
    with suppress(ValueError):  # some that are written in C do not say
        return "intermediate_result" in inspect.signature(callback).parameters
    return False
