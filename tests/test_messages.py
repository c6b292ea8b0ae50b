"""Every error names the argument, the rule and the value, in one sentence on one line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds

from leamvd import LEAMVD, Reading, minimize
from leamvd._support import checks, threads
from leamvd.networks import DBN, RBM, dbn, likelihood
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import Training
from leamvd.networks.objective import ReconstructionObjective, reconstruction_errors
from leamvd.networks.rbm import RBMParameters
from leamvd.optimizers import random_streams, selection
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.random_search import RandomSearch

EYE, ZERO = np.eye(8, 5), np.zeros(8)
MASKED = np.ma.masked_equal(EYE, 1)
X0 = np.linspace(-1, 1, 6)
IMAGES = np.random.default_rng(2).random((50, 6))
MODEL = RBMParameters(*(np.random.default_rng(1).normal(0, 1.5, shape) for shape in ((4, 3), 4, 3)))
W, B, C = MODEL


def integer(value: Any, **limits: int) -> int:
    return checks.integer("n", value, **limits)


def real(value: Any, **limits: Any) -> float:
    return checks.real("x", value, **limits)


def array(value: Any, shape: tuple[int | None, ...] = (2,), dtype: str = "float64") -> Any:
    return checks.array("x", value, shape=shape, dtype=dtype)


def lea_mvd(**options: Any) -> LEAMVD:
    return LEAMVD(**{"n_var": 5, "bounds": (-1, 1), "seed": 8, "population_size": 8} | options)


def tell(X: Any, F: Any) -> None:
    opt = lea_mvd()
    candidates = opt.ask()
    opt.tell(candidates if X is None else X, F)


def assign(reading: Reading | None = None, **changes: Any) -> None:
    opt = lea_mvd(reading=reading)
    for _ in range(2):
        opt.tell(opt.ask(), np.arange(len(opt.ask())))
    opt.state = opt.state._replace(**changes)


def never(x: Any) -> float:
    pytest.fail("was called")


def search(fun: Any = never, x0: Any = X0, **options: Any) -> Any:
    return minimize(fun, x0, **{"seed": 1, "n_gen": 2} | options)


def cd(V: Any = IMAGES, **settings: Any) -> ContrastiveDivergence:
    return ContrastiveDivergence(V, **{"n_hidden": 2} | settings)


def overflowing(**settings: Any) -> None:
    trainer = cd(IMAGES.astype("float32"), seed=0, batch_size=5, **settings)
    for _ in range(2):
        trainer.epoch()


def chains(**changes: Any) -> Any:
    given: dict[str, Any] = {"base": B, "n_chains": 2, "n_temperatures": 2} | changes
    return likelihood.log_weights(MODEL, **given, rng=np.random.default_rng(0))


def objective(V: Any = IMAGES, n_hidden: int = 4, **settings: Any) -> ReconstructionObjective:
    return ReconstructionObjective(V, n_hidden, **settings)


CASES: list[tuple[Callable[[], Any], str]] = [
    # ---- numbers, choices, arrays
    (lambda: integer(True), "TypeError: n must be an integer, got True"),
    (lambda: integer(np.True_), "TypeError: n must be an integer, got np.True_"),
    (lambda: integer(1.0), "TypeError: n must be an integer, got 1.0"),
    (lambda: integer(5, at_least=1, at_most=4), "ValueError: n must be an integer >= 1 and <= 4, got 5"),
    (lambda: integer(0, at_least=1), "ValueError: n must be an integer >= 1, got 0"),
    (lambda: integer(10**5000, at_most=9), "ValueError: n must be an integer <= 9, got a large int"),
    (lambda: real(-1e-9, at_least=0), "ValueError: x must be a finite number >= 0, got -1e-09"),
    (lambda: real(0, above=0), "ValueError: x must be a finite number > 0, got 0"),
    (lambda: real(1.1, at_most=1), "ValueError: x must be a finite number <= 1, got 1.1"),
    (lambda: real(1, below=1), "ValueError: x must be a finite number < 1, got 1"),
    (lambda: real(np.inf), "ValueError: x must be a finite number, got inf"),
    (lambda: real(np.nan), "ValueError: x must be a finite number, got nan"),
    (lambda: real(10**400), "ValueError: x must be a finite number, got 1000"),
    (lambda: real(1e300, above=0, dtype="float32"), "ValueError: x must be a finite number > 0 in float32, got 1e+300"),
    (lambda: real(1e-60, above=0, dtype="float32"), "ValueError: x must be a finite number > 0 in float32, got 1e-60"),
    (lambda: real("1"), "TypeError: x must be a number, got '1'"),
    (lambda: real(b"1"), "TypeError: x must be a number, got b'1'"),
    (lambda: real(True), "TypeError: x must be a number, got True"),
    (lambda: real([1, 2]), "TypeError: x must be a number, got [1, 2]"),
    (lambda: real(1 + 2j), "TypeError: x must be a number, got (1+2j)"),
    (lambda: real(np.complex64(1)), "TypeError: x must be a number, got np.complex64(1+0j)"),
    (lambda: real(EYE), "TypeError: x must be a number, got array([[1., 0., 0., 0., 0.], [0., 1., 0."),
    (lambda: checks.choice("mode", "c", ("a", "b")), "ValueError: mode must be one of 'a', 'b', got 'c'"),
    (lambda: checks.choice("mode", EYE, ("a", "b")), "ValueError: mode must be one of 'a', 'b', got array([[1., 0., "),
    (lambda: checks.choice("flag", 1, (True, False)), "ValueError: flag must be one of True, False, got 1"),
    (lambda: array(EYE, (None, 4)), "ValueError: x must have shape (any, 4), got (8, 5)"),
    (lambda: array(EYE, (3,)), "ValueError: x must have shape (3,), got (8, 5)"),
    (lambda: array([[1, np.nan]], (1, 2)), "ValueError: x must be finite, got nan at index (0, 1)"),
    (lambda: array([1e39, 0], dtype="float32"), "ValueError: x must be finite, got inf at index (0,)"),
    (lambda: array(["1", "2"]), "TypeError: x must be an array of numbers, got array(['1', '2'], dtype='<U1')"),
    (lambda: array([1.0, None]), "TypeError: x must be an array of numbers, got array([1.0, None], dtype=object)"),
    (lambda: array([1.0, [2.0]]), "TypeError: x must be an array of numbers, got [1.0, [2.0]]"),
    (lambda: array(MASKED, (8, 5)), "TypeError: x must not be masked, got masked_array( data=[[--, 0.0, "),
    (lambda: array(list(MASKED), (8, 5)), "TypeError: x must not be masked, got [masked_array(data=[--, 0.0, "),
    (lambda: array(EYE * 1j, (8, 5)), "TypeError: x must be an array of real numbers, got array([[0.+1.j, 0.+0.j, "),
    (lambda: array([1.5, 2.0], dtype="int64"), "TypeError: x must be an array of integers, got array([1.5, 2. ])"),
    (lambda: array([True, False], dtype="int64"), "TypeError: x must be an array of integers, got array([ True, False"),
    (lambda: array([0, 2**53 + 1]), "ValueError: x must hold integers that float64 tells apart, up to 900719925474099"),
    (
        lambda: array([-(2**24) - 1, 0], dtype="float32"),
        "ValueError: x must hold integers that float32 tells apart, up to 16777216, got 16777217",
    ),
    (
        lambda: array(np.array([1, 2**63], np.uint64), dtype="int64"),
        "ValueError: x must hold integers that int64 tells apart, up to 9223372036854775807, got 9223372036854775808",
    ),
    (lambda: threads.thread_count(0), "ValueError: n_threads must be an integer >= 1, got 0"),
    (lambda: random_streams.key(-1), "ValueError: seed must be an integer >= 0 and <= 18446744073709551615, got -1"),
    (lambda: random_streams.key(2**64), "ValueError: seed must be an integer >= 0 and <= 18446744073709551615, got 18"),
    # ---- selection
    (lambda: selection.fractional_tournament(0), "ValueError: population_size must be an integer >= 1, got 0"),
    (lambda: selection.fractional_tournament(3, -1), "ValueError: exponent must be a finite number >= 0, got -1"),
    (lambda: selection.tournament(3, 0), "ValueError: size must be an integer >= 1, got 0"),
    (lambda: selection.mean_and_std(EYE, B), "ValueError: weights must have shape (8,), got (4,)"),
    (lambda: selection.mean_and_std([[0.0], [np.nan]], [0.5, 0.5]), "ValueError: population must be finite, got nan a"),
    # ---- readings
    (lambda: Reading(exponent=-0.1), "ValueError: exponent must be a finite number >= 0, got -0.1"),
    (lambda: Reading(exponent="1.5"), "TypeError: exponent must be a number, got '1.5'"),
    (lambda: Reading(reset=0), "ValueError: reset, if not 'initial' or 'off', must be a finite number > 0, got 0"),
    (lambda: Reading(reset="never"), "TypeError: reset, if not 'initial' or 'off', must be a number, got 'never'"),
    (lambda: Reading(population_size=1), "ValueError: population_size must be an integer >= 2, got 1"),
    (lambda: Reading(n_gen=0), "ValueError: n_gen must be an integer >= 1, got 0"),
    (lambda: Reading(n_descent_rows=True), "ValueError: n_descent_rows must be one of 4, 3, got True"),
    (lambda: Reading(x0_in_population=1), "ValueError: x0_in_population must be one of True, False, got 1"),
    (lambda: Reading(limits="wrap"), "ValueError: limits must be one of 'first', 'clip', 'reflect', got 'wrap'"),
    (
        lambda: Reading.named("mine.json"),
        "ValueError: reading must be one of 'default', 'printed', 'x0-excluded', 'recommended', got",
    ),
    # ---- optimizers
    (lambda: lea_mvd(n_elite=8), "ValueError: n_elite=8 clashes with population_size=8: at least one individual must"),
    (lambda: lea_mvd(n_elite=0), "ValueError: n_elite must be an integer >= 1, got 0"),
    (lambda: lea_mvd(population_size=4, n_elite=2), "ValueError: reading.n_descent_rows=4 clashes with population_siz"),
    (lambda: lea_mvd(population_size=1), "ValueError: population_size must be an integer >= 2 and <= 16777216, got 1"),
    (
        lambda: lea_mvd(bounds=None, x0=[0.0] * 5, reading=Reading(limits="clip")),
        "ValueError: reading.limits='clip' clashes with bounds=None: there is nothing to keep",
    ),
    (lambda: lea_mvd(bounds=None), "ValueError: x0 and bounds are both missing: give a start solution x0, or bounds t"),
    (lambda: lea_mvd(x0=[1.0, 2.0]), "ValueError: n_var=5 and len(x0)=2 clash: they must agree"),
    (lambda: lea_mvd(n_var=None), "ValueError: n_var must be given where x0 is not, got None"),
    (lambda: lea_mvd(n_var=2**63), "ValueError: n_var must be an integer >= 1 and <= 68719476736, got 922337203685477"),
    (lambda: lea_mvd(bounds=([0] * 4, 1)), "ValueError: n_var=5 and len(low of bounds)=4 clash: they must agree"),
    (lambda: lea_mvd(bounds=[(0, 1)] * 4), "ValueError: n_var=5 and len(low of bounds)=4 and len(high of bounds)=4 cl"),
    (lambda: lea_mvd(bounds=(1, 0)), "ValueError: bounds must have low <= high, got 1.0 > 0.0 at index 0"),
    (
        lambda: lea_mvd(bounds=(0.1, [1, 0.1, 1, 1, 1]), dtype="float32"),
        "ValueError: bounds must have a float32 between low and high, got 0.1 and 0.1 at index 1",
    ),
    (lambda: lea_mvd(bounds=(0, np.inf)), "ValueError: high of bounds must be a finite number, got inf"),
    (lambda: lea_mvd(bounds=Bounds(0, np.inf)), "ValueError: high of bounds must be a finite number, got inf"),
    (lambda: lea_mvd(bounds=(0, [1, 1, np.nan, 1, 1])), "ValueError: high of bounds must be finite, got nan at index"),
    (lambda: lea_mvd(bounds=3), "ValueError: bounds must be a pair (low, high) of numbers or arrays, a pair (low_i, h"),
    (lambda: lea_mvd(bounds=[(0, 1, 2)] * 5), "ValueError: bounds must be a pair (low, high) of numbers or arrays, a"),
    (lambda: lea_mvd(bounds=[(0, None)] * 5), "TypeError: high of bounds must be an array of numbers, got array([None"),
    (
        lambda: lea_mvd(bounds=[(-5, 5)] * 2, n_var=2),
        "ValueError: bounds=[(-5, 5), (-5, 5)] of two variables could be (low, high) or (low_i, high_i) for each",
    ),
    (lambda: lea_mvd(bounds=(-1e300, 1), dtype="float32"), "ValueError: low of bounds must be a finite number in floa"),
    (lambda: lea_mvd(x0=np.full(5, np.nan)), "ValueError: x0 must be finite, got nan at index (0,)"),
    (lambda: lea_mvd(x0=np.zeros((5, 1))), "ValueError: x0 must have shape (any,), got (5, 1)"),
    (lambda: lea_mvd(sigma0=0), "ValueError: sigma0 must be a finite number > 0, got 0"),
    (lambda: lea_mvd(sigma0=1e-60, dtype="float32"), "ValueError: sigma0 must be a finite number > 0 in float32, got"),
    (lambda: lea_mvd(sigma_min=-1), "ValueError: sigma_min must be a finite number >= 0, got -1"),
    (lambda: lea_mvd(n_gen=0), "ValueError: n_gen must be an integer >= 1, got 0"),
    (lambda: lea_mvd(dtype="float16"), "ValueError: dtype must be float32 or float64, got 'float16'"),
    (lambda: lea_mvd(dtype="abc"), "ValueError: dtype must be float32 or float64, got 'abc'"),
    (lambda: lea_mvd(reading="printed"), "TypeError: reading must be a leamvd.Reading, got 'printed'"),
    (
        lambda: lea_mvd(reading=Reading(reset=1e300), dtype="float32"),
        "ValueError: reading.reset must be a finite number > 0 in float32, got 1e+300",
    ),
    (
        lambda: lea_mvd().halt("bored"),
        "ValueError: reason must be one of 'running', 'target', 'sigma_min', 'cma'",
    ),
    (lambda: CMAES([[1.0]]), "ValueError: x0 must have shape (any,), got (1, 1)"),
    (lambda: CMAES(X0, sigma0=0), "ValueError: sigma0 must be a finite number > 0, got 0"),
    (lambda: CMAES(X0, diagonal="no"), "ValueError: diagonal must be one of True, False, got 'no'"),
    (lambda: CMAES(X0, x0_in_population=2), "ValueError: x0_in_population must be one of True, False, got 2"),
    (
        lambda: CMAES(np.full(3, 0.5), bounds=([-1, -1, 0.5], [1, 1, 0.5])),
        "ValueError: bounds must have low < high for CMA-ES, got 0.5 for both at index 2",
    ),
    (lambda: RandomSearch(), "ValueError: n_var must be given where x0 is not, got None"),
    (lambda: RandomSearch(X0, sigma0=-1), "ValueError: sigma0 must be a finite number > 0, got -1"),
    # ---- tell
    (lambda: tell(np.zeros((7, 5)), ZERO), "ValueError: X must have shape (8, 5), got (7, 5)"),
    (lambda: tell(np.full((8, 5), np.nan), ZERO), "ValueError: X must be finite, got nan at index (0, 0)"),
    (lambda: tell(MASKED, ZERO), "TypeError: X must not be masked, got masked_array("),
    (lambda: tell(None, ZERO[:7]), "ValueError: F must have shape (8,), got (7,)"),
    (lambda: tell(None, ZERO[:, None]), "ValueError: F must have shape (8,), got (8, 1)"),
    (lambda: tell(None, [np.ma.masked, *ZERO[1:]]), "TypeError: F must not be masked, got [masked, "),
    (lambda: tell(None, [0, 0, -np.inf, 0, 0, 0, 0, 0]), "ValueError: F must be larger than -inf, got -inf at index 2"),
    (lambda: lea_mvd().tell(EYE, ZERO), "RuntimeError: tell needs candidates to be asked for first: call ask()"),
    # ---- states
    (lambda: lea_mvd().state, "RuntimeError: state is defined after tell() and before the next ask()"),
    (lambda: setattr(lea_mvd(), "state", 3), "TypeError: state must be a leamvd.State, got 3"),
    (lambda: assign(population=np.zeros((8, 4))), "ValueError: state.population must have shape (8, 5), got (8, 4)"),
    (lambda: assign(population=MASKED), "TypeError: state.population must not be masked, got masked_array("),
    (lambda: assign(fitness=np.arange(8.0)[::-1]), "ValueError: state.fitness must be values above -inf, best first,"),
    (lambda: assign(fitness=np.full(8, np.nan)), "ValueError: state.fitness must be values above -inf, best first, go"),
    (lambda: assign(fitness=np.full(8, -np.inf)), "ValueError: state.fitness must be values above -inf, best first, g"),
    (lambda: assign(fitness=ZERO[:7]), "ValueError: state.fitness must have shape (8,), got (7,)"),
    (lambda: assign(mean=np.zeros(4)), "ValueError: state.mean must have shape (5,), got (4,)"),
    (lambda: assign(std=np.full(5, np.inf)), "ValueError: state.std must be finite, got inf at index (0,)"),
    (lambda: assign(std=np.array([1, 1, -1e-9, 1, 1])), "ValueError: state.std must be >= 0, got -1e-09 at index 2"),
    (lambda: assign(path=np.full(5, np.nan)), "ValueError: state.path must be finite, got nan at index (0,)"),
    (lambda: assign(descent=None), "TypeError: state.descent must be an array of numbers, got array(None"),
    (lambda: assign(descent_rows=np.arange(3)), "ValueError: state.descent_rows must have shape (4,), got (3,)"),
    (lambda: assign(descent_rows=np.arange(4)), "ValueError: state.descent_rows must be distinct ranks from 1 to 7, g"),
    (lambda: assign(descent_rows=[1, 2, 3, 8]), "ValueError: state.descent_rows must be distinct ranks from 1 to 7, g"),
    (lambda: assign(descent_rows=[1, 2, 3, 3]), "ValueError: state.descent_rows must be distinct ranks from 1 to 7, g"),
    (lambda: assign(descent_mean=np.inf), "ValueError: state.descent_mean must be a finite number, got inf"),
    (lambda: assign(descent_std=-1.0), "ValueError: state.descent_std must be a finite number >= 0, got -1.0"),
    (lambda: assign(beta1=0.0), "ValueError: state.beta1 must be a finite number > 0 and <= 3, got 0.0"),
    (lambda: assign(beta1=3.1), "ValueError: state.beta1 must be a finite number > 0 and <= 3, got 3.1"),
    (lambda: assign(beta2=1.1), "ValueError: state.beta2 must be a finite number >= 0 and <= 1, got 1.1"),
    (lambda: assign(stagnation=10), "ValueError: state.stagnation must be an integer >= 0 and <= 9, got 10"),
    (lambda: assign(generation=0), "ValueError: state.generation must be an integer >= 1 and <= 4294967294, got 0"),
    (lambda: assign(nfev=-1), "ValueError: state.nfev must be an integer >= 1, got -1"),
    (lambda: assign(n_nan=99), "ValueError: state.n_nan must be an integer >= 0 and <= 12, got 99"),
    (lambda: assign(n_inf=13), "ValueError: state.n_inf must be an integer >= 0 and <= 12, got 13"),
    (lambda: assign(initial_std=np.ones(5)), "ValueError: state.initial_std must be None where reading.reset=1.0, got"),
    (lambda: assign(Reading(reset="initial"), initial_std=None), "TypeError: state.initial_std must be an array of nu"),
    (lambda: assign(Reading(reset="initial"), initial_std=-np.ones(5)), "ValueError: state.initial_std must be >= 0,"),
    (lambda: assign(std_norm=-1.0), "ValueError: state.std_norm must be a finite number >= 0, got -1.0"),
    (lambda: assign(descent_norm=None), "TypeError: state.descent_norm must be a number, got None"),
    # ---- minimize, before the function is called
    (lambda: search(3), "TypeError: fun must be callable, got 3"),
    (lambda: search(method="cma"), "ValueError: method must be one of 'lea-mvd', 'cma-es', 'sep-cma-es', 'random', go"),
    (lambda: search(target=np.nan), "ValueError: target must be a finite number, got nan"),
    (lambda: search(callback=3), "TypeError: callback must be callable, got 3"),
    (lambda: search(constraints=3), "ValueError: constraints must be empty, since no method here keeps any but bounds"),
    (
        lambda: search(populationsize=3),
        "TypeError: populationsize must be left out, since method='lea-mvd' has no such argument; did you mean '",
    ),
    (
        lambda: search(options={"max_nfevs": 300}),
        "TypeError: max_nfevs must be left out, since method='lea-mvd' has no such argument; did you mean 'max_nfev'?",
    ),
    *(
        (
            lambda m=method: search(exponent=3, method=m),
            f"TypeError: exponent must be left out, since method='{method}' has no such argument",
        )
        for method in ("sep-cma-es", "random")
    ),
    (lambda: search(exponent=-1), "ValueError: exponent must be a finite number >= 0, got -1"),
    (lambda: search(reset="of", reading=3), "TypeError: reading must be a leamvd.Reading, got 3"),
    (lambda: search(sigma0="aut"), "ValueError: sigma0, if not a number, must be one of 'auto', got 'aut'"),
    (lambda: search(options=3), "TypeError: options must be a dict of arguments, got 3"),
    (lambda: search(maxiter=3), "ValueError: maxiter=3 and n_gen=2 clash: they are one argument, give one of them"),
    (lambda: search(rng=3), "ValueError: rng=3 and seed=1 clash: they are one argument, give one of them"),
    (lambda: search(options={"n_gen": 3}), "ValueError: n_gen must be given once, directly or in options, got both"),
    (lambda: search(seed=np.random), "TypeError: seed must be an integer, got <module 'numpy.random' from"),
    (lambda: search(max_nfev=0), "ValueError: max_nfev must be an integer >= 1, got 0"),
    (lambda: search(max_nfev=23), "ValueError: max_nfev must be at least 24, a generation's candidates, got 23"),
    (lambda: search(max_seconds=0), "ValueError: max_seconds must be a finite number > 0, got 0"),
    (lambda: search(max_stagnation=0), "ValueError: max_stagnation must be an integer >= 1, got 0"),
    (lambda: search(checkpoint_every=0), "ValueError: checkpoint_every must be an integer >= 1, got 0"),
    (lambda: search(checkpoint=""), "ValueError: checkpoint must be the path of a file, got ''"),
    (lambda: search(checkpoint=".."), "ValueError: checkpoint must be the path of a file, got '..'"),
    (lambda: search(checkpoint=3), "TypeError: checkpoint must be the path of a file, got 3"),
    (lambda: search(x0=None, bounds=(0, 1), method="cma-es"), "ValueError: x0 must be given for method='cma-es', got"),
    *(
        (
            lambda w=workers: search(workers=w),
            f"{error}: workers must be a number of processes, -1 for one a processor, or",
        )
        for workers, error in ((0, "ValueError"), (-2, "ValueError"), (2.0, "TypeError"), (None, "TypeError"))
    ),
    *(
        (
            lambda o=options: minimize(never, method=lea_mvd(), **o),
            f"ValueError: {next(iter(options))} must be left out where method is an optimizer, got <LEAMVD: n_var=5",
        )
        for options in ({"x0": X0}, {"bounds": (-1, 1)}, {"seed": 0}, {"n_gen": 3})
    ),
    *(
        (
            lambda m=method, x=outside: search(x0=[0.0, -1, 1, 0.5, x], bounds=(-1, 1), method=m),
            f"ValueError: x0 must lie within bounds, [-1.0, 1.0] at index 4, got {outside}",
        )
        for method in ("lea-mvd", "cma-es", "random")
        for outside in (3.0, -1.5)
    ),
    # ---- minimize, by what the function returns
    (lambda: search(lambda x: -np.inf), "ValueError: fun's values must be larger than -inf, got -inf at index 0"),
    (lambda: search(lambda x: x), "ValueError: fun must return one number for each point, got 6 numbers; where it tak"),
    (lambda: search(lambda x: None), "ValueError: fun must return one number for each point, got None; where it takes"),
    (lambda: search(lambda x: 1j), "TypeError: fun's values must be an array of real numbers, got array([0.+1.j"),
    (lambda: search(lambda x: np.ma.masked), "TypeError: fun's values must not be masked, got masked"),
    (lambda: search(lambda x: MASKED[0, :1]), "TypeError: fun's values must not be masked, got masked_array(data=[--]"),
    (
        lambda: search(lambda X: np.ma.masked_less(X[:, 0], 0), vectorized=True),
        "TypeError: fun's values must not be masked, got masked_array(data=[--, ",
    ),
    # ---- RBMs, their error and training
    (lambda: RBMParameters.from_flat(np.zeros(10), 2, 3), "ValueError: theta must have shape (11,), got (10,)"),
    (
        lambda: RBMParameters.from_flat(np.full(11, np.nan), 2, 3),
        "ValueError: theta must be finite, got nan at index (0,)",
    ),
    (lambda: RBMParameters.from_flat(np.zeros(2), 2, 0), "ValueError: n_hidden must be an integer >= 1, got 0"),
    (lambda: MODEL.hidden_given_visible(EYE), "ValueError: V must have shape (any, 4), got (8, 5)"),
    (lambda: MODEL.visible_given_hidden(EYE), "ValueError: H must have shape (any, 3), got (8, 5)"),
    (lambda: RBMParameters(W.astype(int), B, C).check(), "TypeError: W must be float32 or float64, got int64"),
    (lambda: RBMParameters(W, B.astype("float32"), C).check(), "TypeError: b must be float64 as W is, got float32"),
    (lambda: RBMParameters(W, B, C.astype(int)).check(), "TypeError: c must be float64 as W is, got int64"),
    (
        lambda: RBMParameters(np.ma.masked_less(W, 0), B, C).check(),
        "TypeError: W must be a plain NumPy array, got masked_array(",
    ),
    (lambda: RBMParameters(W.tolist(), B, C).check(), "TypeError: W must be a plain NumPy array, got [["),
    (lambda: RBMParameters(B, B, C).check(), "ValueError: W must have shape (n_visible, n_hidden), got (4,)"),
    (lambda: RBMParameters(W, B, C[:2]).check(), "ValueError: c must have shape (3,) for W of shape (4, 3), got (2,)"),
    (
        lambda: RBMParameters(W, B[:, None], C).check(),
        "ValueError: b must have shape (4,) for W of shape (4, 3), got (4, 1)",
    ),
    (
        lambda: RBMParameters(np.zeros((22, 21)), np.zeros(22), np.zeros(21)).log_likelihood(np.zeros((1, 22))),
        "ValueError: the exact log-likelihood sums over all states of the smaller layer, which must have at most 20",
    ),
    (lambda: chains(base=B[:3]), "ValueError: base must have shape (4,), got (3,)"),
    (lambda: chains(n_chains=0), "ValueError: n_chains must be an integer >= 1, got 0"),
    (lambda: chains(n_temperatures=0), "ValueError: n_temperatures must be an integer >= 1, got 0"),
    (lambda: reconstruction_errors(MODEL, IMAGES, seed=0), "ValueError: V must have 4 columns, one for each visible u"),
    (lambda: reconstruction_errors(MODEL, IMAGES[:, :4], seed=-1), "ValueError: seed must be an integer >= 0, got -1"),
    (lambda: objective([[-1.0, 2.0]]), "ValueError: V must lie in [0, 1], got values from -1.0 to 2.0"),
    (lambda: objective(np.empty((0, 3))), "ValueError: V must hold at least one image of at least one pixel, got shap"),
    (lambda: objective(n_hidden=0), "ValueError: n_hidden must be an integer >= 1, got 0"),
    (lambda: objective(block_size=0), "ValueError: block_size must be an integer >= 1, got 0"),
    (lambda: objective()(np.zeros((1, 33))), "ValueError: X must have shape (any, 34), got (1, 33)"),
    (lambda: objective(backend="jax"), "ValueError: backend must be one of 'numpy', 'torch', got 'jax'"),
    (lambda: objective(precision="float16"), "ValueError: precision must be one of 'float32', 'float64', 'bfloat16',"),
    (lambda: objective(precision="bfloat16"), "ValueError: precision must be that of the images, 'float64', for backe"),
    (lambda: Training(precision="float64"), "ValueError: precision must be that of the images, 'float32', for backend"),
    (lambda: objective(device="cuda"), "ValueError: device must be 'cpu' or None for backend='numpy', got 'cuda'"),
    (lambda: cd(np.zeros(3)), "ValueError: V must have shape (any, any), got (3,)"),
    (lambda: cd(k=0), "ValueError: k must be an integer >= 1, got 0"),
    (lambda: cd(batch_size=0), "ValueError: batch_size must be an integer >= 1, got 0"),
    (lambda: cd(learning_rate=-1), "ValueError: learning_rate must be a finite number >= 0, got -1"),
    (lambda: cd(momentum=1), "ValueError: momentum must be a finite number >= 0 and < 1, got 1"),
    (lambda: cd(final_momentum=1), "ValueError: final_momentum must be a finite number >= 0 and < 1, got 1"),
    (lambda: cd(momentum_epochs=-1), "ValueError: momentum_epochs must be an integer >= 0, got -1"),
    (lambda: cd(weight_decay=-1), "ValueError: weight_decay must be a finite number >= 0, got -1"),
    (lambda: cd(initial_weights="zero"), "ValueError: initial_weights must be one of 'normal', 'uniform', got 'zero'"),
    (lambda: cd(weight_scale=-1), "ValueError: weight_scale must be a finite number >= 0, got -1"),
    (lambda: cd(seed=-1), "ValueError: seed must be an integer >= 0, got -1"),
    (lambda: cd(dtype="int8"), "ValueError: dtype must be float32 or float64, got 'int8'"),
    (lambda: overflowing(learning_rate=1e300), "ValueError: learning_rate must be a finite number >= 0 in float32, go"),
    (lambda: overflowing(learning_rate=1e30), "ValueError: learning_rate must keep the weights finite, got 1e+30: the"),
    (lambda: Training(learning_rate=1e300), "ValueError: learning_rate must be a finite number >= 0 in float32, got 1"),
    (lambda: Training(n_elite=0), "ValueError: n_elite must be an integer >= 1, got 0"),
    (lambda: Training(sigma0=0), "ValueError: sigma0 must be a finite number > 0, got 0"),
    (lambda: Training(x0="seed"), "ValueError: x0 must be one of 'epochs', 'batch', 'none', got 'seed'"),
    (lambda: Training(x0_epochs=-1), "ValueError: x0_epochs must be an integer >= 0, got -1"),
    (lambda: Training(x0_limit=0), "ValueError: x0_limit must be a finite number > 0, got 0"),
    (
        lambda: Training(x0="batch", x0_epochs=2),
        "ValueError: x0_epochs=2 clashes with x0='batch': it belongs to x0='epochs'",
    ),
    (lambda: Training(x0_limit=0.5), "ValueError: x0_limit=0.5 clashes with x0='epochs': it belongs to x0='none'"),
    (lambda: Training(dtype="float16"), "ValueError: dtype must be one of 'float32', 'float64', got 'float16'"),
    (
        lambda: reconstruction_errors(MODEL, IMAGES[:, :4], seed=0, train_mean=np.zeros(1)),
        "ValueError: train_mean must have shape (4,), got (1,)",
    ),
    (
        lambda: likelihood.estimate(MODEL, IMAGES[:, :4], [1.0]),
        "ValueError: log_w must be of two chains or more, got 1",
    ),
    (lambda: Training(cd_steps=0), "ValueError: cd_steps must be an integer >= 1, got 0"),
    (lambda: next(dbn.train("sgd", IMAGES, 3)), "ValueError: method must be one of 'cd', 'lea-mvd', 'cma-es'"),
    (lambda: next(dbn.train("cd", IMAGES, 3, seed=2**64)), "ValueError: seed must be an integer >= 0 and <= 184467440"),
    (lambda: dbn.layer_input([], IMAGES, features="both"), "ValueError: features must be one of 'probabilities', 'bit"),
    (lambda: dbn.pretrain(IMAGES, (5, 4), below=[]), "ValueError: below must have 1 layers or more, got 0"),
    # ---- estimators, which say it when they are fitted
    (lambda: RBM(0).fit(IMAGES), "ValueError: n_hidden must be an integer >= 1 and <= 68719476736, got 0"),
    (lambda: RBM(trainer="sgd").fit(IMAGES), "ValueError: trainer must be one of 'cd', 'lea-mvd', 'cma-es', 'sep-cma-"),
    (lambda: RBM(n_iter=0).fit(IMAGES), "ValueError: n_iter must be an integer >= 1, got 0"),
    (lambda: RBM(reading="printed").fit(IMAGES), "TypeError: reading must be a leamvd.Reading or None, got 'printed'"),
    (lambda: RBM(random_state=-1).fit(IMAGES), "ValueError: random_state must be an integer >= 0 and <= 1844674407370"),
    (lambda: RBM(random_state="x").fit(IMAGES), "TypeError: random_state must be an integer, got 'x'"),
    (lambda: RBM(learning_rate=-1).fit(IMAGES), "ValueError: learning_rate must be a finite number >= 0, got -1"),
    (lambda: DBN(()).fit(IMAGES), "ValueError: layers must be a sequence with at least one number of units, got ()"),
    (lambda: DBN(3).fit(IMAGES), "ValueError: layers must be a sequence with at least one number of units, got 3"),
    (lambda: DBN((3, 0)).fit(IMAGES), "ValueError: layers[1] must be an integer >= 1, got 0"),
    (lambda: DBN((3, 2.5)).fit(IMAGES), "TypeError: layers[1] must be an integer, got 2.5"),
    (lambda: DBN(features="pixels").fit(IMAGES), "ValueError: features must be one of 'probabilities', 'bits', got 'p"),
    (
        lambda: DBN((3,), n_iter=1, random_state=1).fit(IMAGES).inverse_transform(IMAGES),
        f"ValueError: X must have shape (any, 3), got {IMAGES.shape}",
    ),
]


def one_sentence(call: Callable[[], Any]) -> str:
    """Return the error of a call, with its kind, which is on one line."""
    with pytest.raises((TypeError, ValueError, RuntimeError)) as caught:
        call()
    told = f"{type(caught.value).__name__}: {caught.value}"
    assert "\n" not in told
    return told


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message for _, message in CASES])
def test_an_error_is_one_sentence(call: Callable[[], Any], message: str) -> None:
    told = one_sentence(call)
    assert told.startswith(message)
    assert len(told) < 300
