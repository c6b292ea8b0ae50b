"""The budgeted loop over any of the optimizers: callbacks, progress, history,
workers, checkpoints.
"""

import functools
import inspect
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult, OptimizeWarning
from tqdm import tqdm

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd.optimizers.base import BoundsLike, Generation, Optimizer
from leamvd.optimizers.checkpoints import Checkpoint, checksum
from leamvd.optimizers.evaluation import Evaluation
from leamvd.optimizers.local_model import measure
from leamvd.optimizers.methods import METHODS, arguments, optimizer
from leamvd.optimizers.reading import Reading

AUTO = "auto"  # `sigma0` for half of sigma*, see `leamvd.optimizers.local_model`
UNLIMITED = sys.maxsize  # `n_gen` where another budget ends the search

# With `AUTO`, the pairs that are evaluated, the size of their steps, and sigma0 where nothing
# curves upward there.
_PAIRS = 30
_STEP = 0.01
_USUAL = 0.1
_MEASURED = 1 + 2 * _PAIRS  # evaluations
# SciPy's names, and ours
_SCIPYS = {"maxiter": "n_gen", "maxfev": "max_nfev", "maxfun": "max_nfev", "rng": "seed"}

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _with_names_of_scipy(search: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let the arguments of `search` also come in one of them, `options`, and by SciPy's names,
    which errors repeat.
    """

    @functools.wraps(search)
    def call(*args: _P.args, **given: _P.kwargs) -> _R:
        inside: Any = given.pop("options", None)
        if inside is None:
            inside = {}
        if not isinstance(inside, Mapping) or "options" in inside:
            raise TypeError(
                "options must be a dict of arguments, without options in it, got"
                f" {checks.shown(inside)}"
            )
        twice = sorted(given.keys() & inside)
        if twice:
            raise TypeError(
                f"{', '.join(twice)} must be given once, directly or in options, got both"
            )
        arguments: Any = given | dict(inside)
        spelled: dict[str, str] = {}  # names that were given, by ours
        for other, name in _SCIPYS.items():
            value = arguments.pop(other, None)
            if value is not None:
                if arguments.get(name) is not None:
                    raise TypeError(f"{other} and {name} are one argument: give one of them")
                arguments[name] = value
                spelled[name] = other
        with checks.spelled(spelled):
            return search(*args, **arguments)

    return call


@_with_names_of_scipy
def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike | None = None,
    *,
    bounds: BoundsLike | None = None,
    vectorized: bool = False,
    method: str | Optimizer = "lea-mvd",
    workers: Any = 1,
    callback: Callable[..., Any] | None = None,
    progress: bool = False,
    target: float | None = None,
    max_nfev: int | None = None,
    max_seconds: float | None = None,
    max_stagnation: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    args: tuple[Any, ...] = (),
    constraints: Any = (),
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    tol: Any = None,
    disp: bool = False,
    **options: Any,
) -> OptimizeResult:
    """Minimize a function of n variables.

    It can be the method of `scipy.optimize.minimize`: ``scipy.optimize.minimize(fun, x0,
    method=leamvd.minimize)``. SciPy's names `maxiter`, `maxfev` or `maxfun`, and `rng` mean
    `n_gen`, `max_nfev` and `seed`.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` of one point (n,), which `fun` may keep; or, where `vectorized`, of a
        whole generation (m, n), returning (m,). A generation is a read-only view that the next one
        overwrites: copy what is to be kept. Where it has no value let it return NaN or +inf, which
        rank last and are counted; a generation of NaN alone ends the search, -inf is refused, and
        an exception loses the values of its generation. A value may be anything that `float` takes,
        but text.
    x0 : array_like, shape (n,), or float, optional
        Start solution; a number is that of one variable. Without it, the first generation is drawn
        uniformly in `bounds`, and a CMA-ES starts at their center.
    bounds : scipy.optimize.Bounds, n pairs (low, high), or pair of float or array_like, optional
        Search limits, which every point keeps; with ``limits="first"``, as in the paper, those of
        the first generation alone (item R15). None and infinities are open ends, which need `x0`.
        It is clipped if it lies outside. Pairs of two variables are tuples: lists or arrays are
        refused where they could be (low, high).
    vectorized : bool
        Whether `fun` takes all candidates of a generation at once, one a row; what takes one a
        column, as SciPy's `differential_evolution` has them, is transposed: ``lambda X: fun(X.T)``.
    method : {"lea-mvd", "cma-es", "sep-cma-es", "random"} or Optimizer
        Which optimizer, in any case; or one that is there, such as a `LEAMVD`, which goes on from
        where it is, even if it was halted. It has its `x0`, `bounds` and `options` already.
    workers : int, map-like callable or executor
        Who calls `fun`: 1, this process; another number, so many processes of joblib's, -1 for one
        a processor; or a callable as `map`, an executor of `concurrent.futures`, a Dask client's
        ``get_executor()`` or a pool, which is left open. The result is the same to the bit. Where
        `vectorized`, each worker gets some rows of the generation: a value must not depend on the
        other rows.
    callback : callable, optional
        Called after every generation, as scipy's: with ``intermediate_result=`` an OptimizeResult
        where its parameter has that name, otherwise with the best point. It stops the search by
        raising StopIteration; what it returns is not used.
    progress : bool
        Show a progress bar.
    target : float, optional
        Stop once the best value is at or below it, which is a success.
    max_nfev : int, optional
        Stop before a generation that would bring the evaluations of the whole search above it.
    max_seconds : float, optional
        Stop at the end of the generation in which this call has taken so long.
    max_stagnation : int, optional
        Stop after so many generations without a better best value.
    checkpoint : path_like, optional
        File in which the values of the search are stored after generations, whole or not at all. If
        it is there, the search is told them again and goes on, to the bit as if it had not ended.
        It is refused where arguments differ, other than limits (`n_gen`, `sigma_min`, `target`,
        `max_...`) and a `seed` that is left out; or candidates, by other versions, code or
        processors. `fun` counts by module and name, or by its type if it has none, and by its
        values: for the last generation of the file it is called again, also where nothing is left
        to compute, for the whole of it where `vectorized`, else for the points of its lowest and
        highest value. Values that differ by more than a millionth of the largest one are asked for
        once more: if they differ again, `fun` has noise, a warning says so, and the search goes on;
        else it is refused. These calls are not counted. Of `args`, numbers, text and arrays count
        by value, all else by its type. `callback` is called once more for that generation. One
        process at a time may use the file, which holds no pickle; the best point is
        ``np.load(file)["x"]``.
    checkpoint_every : int, optional
        Store each of so many generations, by default all, and the last one of a search that ends by
        itself: a kill, Ctrl-C or an exception of `fun` loses those since.
    args : tuple
        Passed on to `fun`; what is not a tuple is its only element.
    constraints : sequence
        Has to be empty: no method here keeps constraints.
    jac, hess, hessp, tol : object
        Not used: no method here takes derivatives or such a tolerance; a warning says so. With
        ``jac=True`` `fun` returns a tuple, whose first element is the value.
    disp : bool
        Print a summary at the end.
    **options
        For the optimizer: `population_size`, `n_gen`, `sigma0`, `seed`, `reading`, ... and for
        LEA-MVD the fields of `Reading`, ``reset="off"`` say, which replace those of `reading`.
        These and all other arguments may also come in a dict: ``options={"n_gen": 50}``. The budget
        is 30 generations, unless `n_gen`, `max_nfev` or `max_seconds` is given. By default, as in
        the paper, LEA-MVD's search depends on where the origin of the coordinates is: with
        ``reading=leamvd.Reading.recommended()`` it does not (item R17). The other methods take
        `population_size`, `n_gen` and `x0_in_population` from a reading; a warning names what they
        have no use for. Here `sigma0` may be "auto": first 61 points, `x0` and pairs around it at
        steps of 0.01, tell slope and curvature, and half of the step size is taken at which half of
        all generations gain (`leamvd.optimizers.local_model`). They count as evaluations. Without a
        slope or upward curvature, it is 0.1, with a warning.

    Returns
    -------
    scipy.optimize.OptimizeResult
        As `Optimizer.result`, with ``history``, a `Generation` of arrays: of this call, and of
        those that a checkpoint continues. ``success`` says that ``status`` is 0. ``reason`` and
        ``status`` say why the search has ended: it reached its target or converged ("target",
        "sigma_min", "cma": 0); used up a budget ("n_gen", "max_nfev", "max_seconds", "cma_maxiter":
        1); stood still ("max_stagnation", "cma_stuck": 2), or began below `sigma_min`
        ("sigma_min_at_start": 2); had a generation without a value ("nan": 3); was ended by the
        callback ("callback": 4) or by Ctrl-C ("interrupted": 5); or goes on, which a callback sees
        ("running": -1).

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, or clashes with another one or the checkpoint, before `fun`
        is first called; or if `fun` has other values than the checkpoint.
    OSError
        If the checkpoint cannot be written, before `fun` is first called or later; the earlier one
        is still there.
    concurrent.futures.BrokenExecutor
        If a worker's process dies.
    Exception
        Whatever `fun` raises. All that is raised after the start carries the best so far in its
        attribute ``result``.

    Examples
    --------
    >>> import numpy as np, leamvd
    >>> result = leamvd.minimize(lambda x: (x**2).sum(), np.ones(50), seed=1, max_nfev=400)
    >>> result.success, result.status, result.reason, result.nfev
    (False, 1, 'max_nfev', 384)
    """
    began = time.monotonic()
    if isinstance(jac, np.bool_):
        jac = bool(jac)
    _check_scipys(constraints, {"jac": jac, "hess": hess, "hessp": hessp, "tol": tol})
    args = args if isinstance(args, tuple) else (args,)
    called = functools.partial(_without_gradient, fun) if jac is True else fun
    evaluation = Evaluation(called, args, vectorized=vectorized, workers=workers)
    call = None if callback is None else _by_its_signature(callback)
    seconds = np.inf if max_seconds is None else checks.real("max_seconds", max_seconds, above=0)
    every = 1
    if checkpoint_every is not None:
        every = checks.count("checkpoint_every", checkpoint_every, at_least=1)
        if checkpoint is None:
            told = "minimize has no use for checkpoint_every without checkpoint"
            checks.warn(told, OptimizeWarning)
    saved = None if checkpoint is None else Checkpoint(checkpoint, fun, args)
    if isinstance(method, Optimizer):
        name = type(method).__name__
        opt = method
        auto = False
        options = {"x0": x0, "bounds": bounds, **options}
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise ValueError(
                f"{', '.join(given)} must be left out where method is an optimizer, got {opt!r}"
            )
    else:
        name = method
        other_budget = max_nfev is not None or max_seconds is not None
        opt, auto = _begun(method, x0, bounds, options, saved, other_budget)
    least = opt.n_candidates
    if auto:
        least += _MEASURED
    if max_nfev is not None and checks.count("max_nfev", max_nfev) < least and opt.generation == 0:
        raise ValueError(
            f"{checks.as_given('max_nfev')} must be at least {least}, got {max_nfev}: a generation"
            " has so many evaluations"
        )
    goal = -np.inf if target is None else checks.real("target", target)
    if max_stagnation is not None:
        max_stagnation = checks.count("max_stagnation", max_stagnation, at_least=1)
    history: list[Generation] = []

    def tell(F: Any) -> None:
        opt.tell(opt.ask(), F)
        history.append(opt.history_row(F))

    def again(X: Any) -> Any:
        """Return values in no time: of the seconds, too, they are not counted."""
        nonlocal began
        start = time.monotonic()
        F = evaluation(X)
        began += time.monotonic() - start
        return F

    def review() -> None:
        """Halt the search where a limit or the callback ends it."""
        if max_nfev is not None and opt.nfev + opt.n_candidates > max_nfev:
            opt.halt("max_nfev", opt.nfev)
        if opt.best_fun <= goal:
            opt.halt("target", opt.best_fun)
        if max_stagnation is not None and _stands_still(history, max_stagnation):
            opt.halt("max_stagnation", max_stagnation)
        if history and call is not None:
            try:
                call(opt.result)
            except StopIteration:
                opt.halt("callback")

    total = None if opt.n_gen == UNLIMITED else opt.n_gen
    try:
        with tqdm(
            total=total, initial=opt.generation, desc=name, unit="gen", disable=not progress
        ) as bar:
            if auto:
                opt.sigma0 = _half_of_sigma_star(opt, evaluation)
            if saved is not None:
                saved.begin(opt, tell, again, whole=vectorized)
            opt.resume()
            review()
            while not opt.stop():
                F = evaluation(opt.ask())
                if saved is not None:
                    saved.told.append((checksum(opt.ask()), F))
                tell(F)
                bar.update()
                bar.set_postfix_str(f"best {opt.best_fun:.6g}", refresh=False)
                review()
                if time.monotonic() - began >= seconds:
                    opt.halt("max_seconds", seconds)
                if saved is not None and (opt.stop() or len(history) % every == 0):
                    saved.write(opt)
    except KeyboardInterrupt:
        opt.halt("interrupted")
    except Exception as error:
        with suppress(Exception):  # some exceptions take no attributes
            error.result = _result(opt, history)  # type: ignore[attr-defined]
            if opt.generation:
                error.add_note(
                    f"the best of {opt.nfev} evaluations, {opt.best_fun:.6g}, is in this error's"
                    " `result`"
                )
        raise
    result = _result(opt, history)
    if disp:
        print(
            f"{result.message}\nbest value: {result.fun:.6g}\ngenerations:"
            f" {result.nit}\nevaluations: {result.nfev}"
        )
    return result


def _stands_still(history: list[Generation], count: int) -> bool:
    """Whether so many generations have brought no better best value."""
    best = [row.best for row in history]
    return len(best) > count and min(best[-count:]) >= best[-count - 1]


def _begun(
    method: object,
    x0: ArrayLike | None,
    bounds: BoundsLike | None,
    options: dict[str, Any],
    saved: Checkpoint | None,
    other_budget: bool,
) -> tuple[Optimizer, bool]:
    """Return a search's optimizer, and whether its sigma0 is still to be measured."""
    if isinstance(method, str):
        method = method.lower()
    name = checks.choice("method", method, METHODS)
    _refuse_unknown(options, arguments(name))
    reading = options.get("reading")
    if not isinstance(reading, Reading):  # what is no reading is refused by the optimizer
        reading = Reading()
    limits = options.get("limits", reading.limits)
    if bounds is not None:  # which are kept, unless `limits` are given
        options["bounds"] = bounds
        if name == "lea-mvd" and limits is None:
            options["limits"] = "clip"
    if other_budget and options.get("n_gen") is None and reading.n_gen is None:
        options["n_gen"] = UNLIMITED
    stored = {} if saved is None else saved.arguments
    if stored and options.get("seed") is None:
        options["seed"] = stored["seed"]
    auto = isinstance(options.get("sigma0"), str)
    if auto:
        checks.choice("sigma0, if not a number,", options["sigma0"], [AUTO])
        if x0 is None:
            raise ValueError(f"x0 must be given for sigma0={AUTO!r}, got None")
        options["sigma0"] = stored.get("sigma0", _USUAL)
    opt = optimizer(name, x0, **options)
    if x0 is not None and bounds is not None and limits != "first" and not auto:
        half = opt._high / 2 - opt._low / 2
        small = (half > 0) & (half < opt.sigma0 / 2)
        if small.any():
            told = f"sigma0={opt.sigma0} is above the width of bounds at index {np.argmax(small)}"
            checks.warn(f"{told}: most points are drawn at their ends", OptimizeWarning)
    return opt, auto and not stored


def _refuse_unknown(options: dict[str, Any], known: set[str]) -> None:
    """Refuse unknown options."""
    unknown = sorted(options.keys() - known)
    if unknown:
        names = known | {*inspect.signature(minimize).parameters, *_SCIPYS}
        close = checks.did_you_mean(unknown[0], names)
        raise TypeError(f"minimize has no argument {unknown[0]!r}{close}")


def _check_scipys(constraints: Any, unused: dict[str, object]) -> None:
    """Refuse what SciPy passes on and no method here can do; warn of what is not used."""
    if constraints is not None and (not hasattr(constraints, "__len__") or len(constraints)):
        raise ValueError(
            "constraints must be empty: no method keeps any but bounds, got"
            f" {checks.shown(constraints)}"
        )
    for name, given in unused.items():
        if given is not None and given is not False:
            why = "no method here takes derivatives"
            if name == "tol":
                why = "give sigma_min, target or max_stagnation"
            checks.warn(f"{name} is not used: {why}")


def _without_gradient(fun: Callable[..., Any], x: Array, *args: Any) -> Any:
    return fun(x, *args)[0]


def _half_of_sigma_star(opt: Optimizer, evaluation: Evaluation) -> float:
    """Return the first standard deviation that pairs around x0 ask for."""
    x0 = cast(Array, opt._x0)
    # steps toward a bound, and the opposite ones, end there
    room = np.minimum(x0 - opt._low, opt._high - x0) if opt._low.size else x0.dtype.type(np.inf)

    def values(X: Array) -> Array:
        F: Array = evaluation(x0 + np.clip(X - x0, -room, room))
        opt.nfev += len(F)
        return F

    model = measure(values, x0, sigma=_STEP, n_pairs=_PAIRS, seed=opt.seed)
    sigma0 = model.step_size(opt.population_size) / 2
    if 0 < sigma0 < np.inf:
        return sigma0
    needed = "finite values"
    if np.isfinite(model.slope + model.curvature):
        needed = "a slope and upward curvature"
    checks.warn(f"sigma0={AUTO!r} needs {needed} at steps of {_STEP} around x0: {_USUAL} is taken")
    return _USUAL


def _result(opt: Optimizer, history: list[Generation]) -> OptimizeResult:
    """Return the result, with the history as a `Generation` of arrays."""
    columns: Any = []
    for name in Generation._fields:
        columns.append(np.array([getattr(row, name) for row in history]))
    return OptimizeResult(opt.result, history=Generation(*columns))  # type: ignore[call-arg]  # as `Optimizer.result`


def _by_its_signature(callback: Callable[..., Any]) -> Callable[[OptimizeResult], Any]:
    """Return scipy's kind of callback as a function of a result; it has to take one argument."""
    if not callable(callback):
        raise TypeError(f"callback must be callable, got {checks.shown(callback)}")
    by_name = False
    try:
        signature = inspect.signature(callback)
        by_name = "intermediate_result" in signature.parameters
        if by_name:
            signature.bind(intermediate_result=None)
        else:
            signature.bind(None)
    except TypeError as error:
        raise TypeError(
            f"callback must take one argument, got {checks.shown(callback)}: {error}"
        ) from None
    except ValueError:  # some that are not written in Python have no signature
        pass
    if by_name:
        return lambda result: callback(intermediate_result=result)
    return lambda result: callback(result.x)
