"""What `minimize` adds to ask and tell; what holds for every method alike is in
`test_optimizers`.
"""

import copy
import doctest
import errno
import functools
import sys
import time
from pathlib import Path
from typing import Any

import cma
import numpy as np
import pytest
import scipy.optimize

import leamvd
from leamvd import LEAMVD, Reading, minimize
from leamvd._support import sources
from leamvd.optimizers import checkpoints
from leamvd.optimizers.base import Generation
from leamvd.optimizers.methods import METHODS, optimizer
from problems import rastrigin, sphere
from test_optimizers import assert_same, failing

X0 = np.linspace(-1, 1, 6)


def point(x: Any) -> float:
    return float(sphere(x[None])[0])


def run(fun: Any = point, **options: Any) -> Any:
    return minimize(fun, **{"x0": X0, "seed": 1, "n_gen": 5} | options)


def never(*_: Any) -> float:
    pytest.fail("was called")


def test_it_is_ask_and_tell_with_a_history() -> None:
    values = []

    def fun(X: Any) -> Any:
        values.append(sphere(X))
        values[-1][1] = np.nan if len(values) == 3 else values[-1][1]
        return values[-1]

    result = run(fun, vectorized=True)
    history = result.history
    assert isinstance(history, Generation)
    np.testing.assert_array_equal(
        history.best, np.minimum.accumulate([np.nanmin(F) for F in values])
    )
    np.testing.assert_allclose(history.mean, [np.nanmean(F) for F in values], rtol=1e-12)
    np.testing.assert_array_equal(
        history.worst, [F.max() if i != 2 else np.inf for i, F in enumerate(values)]
    )
    np.testing.assert_array_equal(history.nfev, [24, 44, 64, 84, 104])
    opt = LEAMVD(X0, seed=1)
    for t in range(5):
        opt.tell(opt.ask(), values[t])
        assert (history.std_norm[t], history.beta1[t], history.beta2[t]) == opt.step_sizes
    np.testing.assert_array_equal(result.x, opt.result.x)
    nothing = run(lambda x: np.nan).history
    assert (nothing.mean[0], nothing.worst[0], nothing.best[0]) == (np.inf, np.inf, np.inf)


def test_a_better_best_counts_even_where_the_last_is_worse() -> None:
    """Elites that are evaluated again may lose what they had."""
    values = iter([5.0, 6.0, 4.0, 5.0, 5.0, 5.0, 5.0])
    given: dict[str, Any] = {
        "n_gen": 7,
        "max_stagnation": 3,
        "reading": Reading(elites="reevaluate"),
    }
    assert run(lambda X: np.full(len(X), next(values)), vectorized=True, **given).nit == 6


def test_an_optimizer_that_is_there_goes_on() -> None:
    whole = run(n_gen=9)
    opt = LEAMVD(X0, seed=1, n_gen=9)
    for limits in ({"max_nfev": 60}, {"max_seconds": 1e-9}, {}):
        result: Any = minimize(point, method=opt, **limits)  # type: ignore[arg-type]
    np.testing.assert_array_equal(result.x, whole.x)
    np.testing.assert_array_equal(result.history.best, whole.history.best[3:])
    assert (result.reason, result.nit, result.nfev) == ("n_gen", 9, 184)
    over: Any = minimize(never, method=copy.copy(opt), callback=never)
    assert (over.reason, over.nit, len(over.history.best)) == ("n_gen", 9, 0)
    assert minimize(never, method=opt, target=result.fun)["reason"] == "target"
    for options in ({"x0": X0}, {"bounds": (-1, 1)}, {"seed": 0}, {"sigma0": "auto"}):
        with pytest.raises(ValueError, match="must be left out where method is an optimizer"):
            minimize(never, method=opt, **options)  # type: ignore[arg-type]


def test_a_point_may_be_kept_and_written_to_but_a_generation_is_a_view() -> None:
    kept, values = [], []

    def fun(x: Any) -> float:
        kept.append(x)
        values.append(point(x))
        return values[-1]

    plain = run()
    np.testing.assert_array_equal(run(fun).x, plain.x)
    assert [point(x) for x in kept] == values
    np.testing.assert_array_equal(run(lambda x: (point(x), x.fill(0))[0]).x, plain.x)
    with pytest.raises(ValueError, match="read-only"):
        run(lambda X: X.fill(0), vectorized=True)


@pytest.mark.parametrize(
    ("options", "outside"),
    [
        ({}, False),
        ({"reset": "off"}, False),
        ({"reading": Reading.recommended()}, False),
        ({"reading": Reading(limits="reflect")}, False),
        ({"reading": Reading(limits="first")}, True),
        ({"reading": Reading.printed()}, True),
        ({"limits": "first"}, True),
        ({"reading": Reading.recommended(), "limits": "first"}, True),
    ],
    ids=str,
)
def test_bounds_are_kept_unless_limits_say_otherwise(
    options: dict[str, Any], outside: bool
) -> None:
    result = run(
        lambda X: -X.sum(axis=1),
        x0=np.full(6, 0.8),
        bounds=(-1, 1),
        vectorized=True,
        n_gen=20,
        **options,
    )
    assert (np.abs(result.x).max() > 1) == outside


def test_fields_of_a_reading_may_be_given_one_by_one_and_replace_those_of_the_given_one() -> None:
    whole = run(n_gen=20, reading=Reading(reset="off", exponent=3, shift="printed"))
    for given in (
        {"reset": "off", "exponent": 3, "shift": "printed"},
        {"reading": Reading(reset="off", exponent=1, shift="printed"), "exponent": 3},
    ):
        np.testing.assert_array_equal(run(n_gen=20, **given).x, whole.x)
    assert np.any(run(n_gen=20).x != whole.x)
    small = run(reading=Reading(population_size=12), population_size=8, reset="off", n_gen=2)
    assert small.nfev == 12, "an argument of the optimizer's own means what it meant"
    assert run(max_nfev=5000, n_gen=None, reading=Reading(n_gen=40)).nit == 40
    written = run(max_nfev=2000, n_gen=None, reading=Reading(n_gen=30))
    assert (written.nit, written.reason, "default" in written.message) == (30, "n_gen", False)


@pytest.mark.parametrize(
    "given",
    [
        *({"x0": np.full(20, 1e-6), "sigma0": 3e-7}, {"x0": np.ones(20), "sigma0": 1e-4}),
        *({"x0": np.full(20, 0.5 + 1e-9), "sigma0": "auto"}, {"bounds": [(0, 1e-5)] * 20}),
    ],
)
def test_a_search_that_begins_below_sigma_min_is_no_success(given: dict[str, Any]) -> None:
    result = minimize(sphere, vectorized=True, seed=1, **given)
    assert (result.success, result.status, result.nit, "lower sigma_min" in result.message) == (
        False,
        2,
        1,
        True,
    )
    assert minimize(sphere, vectorized=True, seed=1, sigma_min=1e-12, **given).nit > 1


@pytest.mark.parametrize("method", METHODS)
def test_a_target_that_is_met_exactly_ends_the_search_in_its_generation(method: str) -> None:
    whole = run(method=method, n_gen=12).history.best
    met = run(method=method, n_gen=12, target=whole[6])
    first = 1 + np.flatnonzero(whole <= whole[6])[0]
    assert (met.reason, met.fun, met.nit) == ("target", whole[6], first)


@pytest.mark.parametrize("method", METHODS)
def test_seconds_are_a_budget_of_their_own_and_all_of_a_call_counts(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a clock that begins at 1,000 s, a generation takes 1 s, and drawing it half of one."""
    now = [1e3]
    sample = type(optimizer(method, X0))._sample

    def fun(X: Any) -> Any:
        now[0] += 1
        return rastrigin(X)

    def drawn(self: Any) -> Any:
        now[0] += 0.5
        return sample(self)

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(type(optimizer(method, X0)), "_sample", drawn)
    found = run(fun, vectorized=True, method=method, n_gen=None, max_seconds=52.5)
    assert (found.reason, found.nit) == ("max_seconds", 35)
    limited = run(fun, vectorized=True, method=method, n_gen=9, max_seconds=52.5)
    assert (limited.reason, limited.nit) == ("n_gen", 9)
    assert run(fun, vectorized=True, method=method, n_gen=None, target=-1).nit == 30


# ---- as SciPy's


def test_it_is_a_method_of_scipys_minimize() -> None:
    options = {"seed": 1, "n_gen": 5, "sigma0": 0.2}
    own = minimize(lambda x: point(x) + 3, X0, bounds=(-2, 2), **options)  # type: ignore[arg-type]
    seen = []
    given: dict[str, Any] = {"method": minimize, "bounds": [(-2, 2)] * 6}
    result = scipy.optimize.minimize(
        lambda x, shift: point(x) + shift,
        X0,
        args=3,
        callback=lambda intermediate_result: seen.append(intermediate_result.fun),
        options=options,
        **given,
    )
    np.testing.assert_array_equal(result.x, own.x)
    np.testing.assert_array_equal(seen, result.history.best)
    constraint = {"type": "eq", "fun": point}
    for constraints in (constraint, [constraint], scipy.optimize.NonlinearConstraint(point, 0, 1)):
        with pytest.raises(ValueError, match="constraints must be empty"):
            scipy.optimize.minimize(never, X0, constraints=constraints, **given)
    with pytest.warns(RuntimeWarning, match="jac is not used"):
        scipy.optimize.minimize(point, X0, jac=lambda x: x, options=options, **given)
    with pytest.warns(RuntimeWarning, match="tol is not used") as caught:
        minimize(point, X0, tol=1e-3, seed=1, n_gen=2)
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("args", [[1.0, 2.0], np.array([1.0, 2.0]), {"a": 1}, "ab", None])
def test_args_that_are_no_tuple_are_one_argument(args: Any) -> None:
    seen: list[Any] = []
    minimize(lambda x, *rest: seen.append(rest) or point(x), X0, args=args, n_gen=1, seed=1)
    assert all(len(rest) == 1 and rest[0] is args for rest in seen)


# ---- a step size that is measured


@pytest.mark.parametrize("method", METHODS)
def test_an_automatic_step_size_is_half_of_the_one_at_which_half_of_all_generations_gain(
    method: str,
) -> None:
    start, told = np.full(400, 1.5), []
    given: dict[str, Any] = {
        "vectorized": True,
        "method": method,
        "seed": 3,
        "n_gen": 4,
        "population_size": 12,
    }
    result = minimize(lambda X: told.extend(X.copy()) or sphere(X), start, sigma0="auto", **given)
    # norm(g) = 2 norm(x0 - 0.5) = 40, tr(H) = 2 n; of 12 normal draws the largest is 1.629 in the
    # mean
    assert result.sigma0 == pytest.approx(1.629 * 40 / 800, rel=0.3)
    assert minimize(sphere, start, sigma0="auto", **given | {"seed": 4}).sigma0 != result.sigma0
    by_hand = minimize(sphere, start, sigma0=result.sigma0, **given)
    assert result.nfev == len(told) == by_hand.nfev + 61
    np.testing.assert_array_equal(result.x, by_hand.x)
    np.testing.assert_array_equal(result.history.nfev, by_hand.history.nfev + 61)


def test_an_automatic_step_size_begins_one_optimizer_and_keeps_to_the_budget_and_the_bounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[Any] = []
    begun: list[Any] = []
    begin = LEAMVD.__init__
    monkeypatch.setattr(
        LEAMVD, "__init__", lambda self, *a, **k: begun.append(k) or begin(self, *a, **k)
    )
    given: dict[str, Any] = {
        "x0": np.ones(50),
        "vectorized": True,
        "sigma0": "auto",
        "bounds": (-1, 1.005),
    }
    result = run(
        lambda X: told.extend(X.copy()) or sphere(X), max_nfev=130, **given | {"n_gen": None}
    )
    assert (result.nfev, result.reason, len(begun)) == (125, "max_nfev", 1)  # 61, 24 and twice 20
    assert np.max(told[:61]) == 1.005
    assert np.min(told[:61]) == pytest.approx(0.995)
    told.clear()
    run(lambda X: told.extend(X.copy()) or sphere(X), **given | {"bounds": (0.995, 3)})
    assert np.min(told[:61]) == 0.995
    assert np.max(told[:61]) == pytest.approx(1.005)
    with pytest.raises(ValueError, match="max_nfev must be at least 85, got 80"):
        run(never, max_nfev=80, **given)
    with pytest.raises(ValueError, match="x0 must be given for sigma0='auto'"):
        run(never, x0=None, bounds=[(-1, 1)] * 6, sigma0="auto")
    with pytest.raises(ZeroDivisionError) as caught:
        run(lambda _: 1 / 0, sigma0="auto")
    assert caught.value.result.nfev == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("fun", "needed"),
    [
        (lambda x: -((x - 2) ** 2).sum(), "a slope and upward curvature"),
        (lambda _: 3.0, "a slope and upward curvature"),
        (lambda x: np.nan if x[0] > 1 else (x**2).sum(), "finite values"),
        (lambda x: 1e200 * (x[0] > 1), "finite values"),
    ],
)
def test_where_nothing_can_be_measured_the_papers_step_size_is_taken(fun: Any, needed: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"needs {needed}.*: 0.1 is taken") as caught:
        result = minimize(fun, np.ones(6), sigma0="auto", seed=1, n_gen=2)
    assert [warning.filename for warning in caught] == [__file__]
    assert result.sigma0 == 0.1


# ---- a file to go on from


# partials have no names: any may go on
def saved(path: Path, fun: Any = rastrigin, **options: Any) -> Any:
    return run(
        functools.partial(fun), **{"vectorized": True, "n_gen": 12, "checkpoint": path} | options
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 2},
        {"dtype": "float32"},
        {"method": "random"},
        {"population_size": 30},
        {"n_elite": 3},
        {"sigma0": 0.2},
        {"reset": "off"},
        {"bounds": (-2, 3)},
        {"limits": "reflect"},
        {"x0": X0 + 1e-9},
        {"x0_in_population": False},
        {"args": (1, np.append(X0[:5], 2))},
        {"args": (1.5, X0)},
        {"args": (1, X0, [])},
    ],
    ids=str,
)
def test_a_checkpoint_of_other_arguments_is_refused_and_left_as_it_is(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    given: dict[str, Any] = {"bounds": (-2, 2), "n_gen": 2, "args": (1, X0)}
    saved(tmp_path / "run.npz", lambda X, *_: rastrigin(X), **given)
    before = (tmp_path / "run.npz").read_bytes()
    with pytest.raises(
        ValueError,
        match=rf"is of a search with .*{next(iter(changes))}=.*, got .*: name another file",
    ):
        saved(tmp_path / "run.npz", never, **given | changes)
    assert (tmp_path / "run.npz").read_bytes() == before


def test_a_checkpoint_of_another_function_is_refused(tmp_path: Path) -> None:
    given: dict[str, Any] = {"vectorized": True, "checkpoint": tmp_path / "run.npz"}
    run(rastrigin, **given)
    for other in (sphere, lambda X: rastrigin(X), functools.partial(rastrigin)):
        with pytest.raises(
            ValueError,
            match=r"is of a search with fun=problems.rastrigin, got [\w.<>]+: name another",
        ):
            run(other, **given)


@pytest.mark.parametrize(
    ("every", "n_gen", "written"),
    [(None, 3, [1, 2, 3]), (1, 2, [1, 2]), (3, 7, [3, 6, 7]), (3, 6, [3, 6]), (9, 4, [4])],
)
def test_each_of_so_many_generations_is_stored_and_the_last_one_of_a_search_that_ends_by_itself(
    every: int | None, n_gen: int, written: list[int], tmp_path: Path, monkeypatch: Any
) -> None:
    stored: list[int] = []
    write = checkpoints.Checkpoint.write
    monkeypatch.setattr(
        checkpoints.Checkpoint,
        "write",
        lambda self, opt: stored.append(opt.generation) or write(self, opt),
    )
    given: dict[str, Any] = {"checkpoint": tmp_path / "run.npz", "checkpoint_every": every}
    run(**given, n_gen=n_gen)
    assert stored == written
    stored.clear()
    interrupted = failing(KeyboardInterrupt(), n_gen)
    other = given | {"checkpoint": tmp_path / "other.npz", "vectorized": True}
    assert run(interrupted, **other, n_gen=99).reason == "interrupted"
    assert stored == [t for t in range(1, n_gen + 1) if t % (every or 1) == 0]


def test_args_are_compared_by_value_where_they_are_plain_and_else_by_their_type(
    tmp_path: Path,
) -> None:
    plain = (np.arange(6.0).reshape(2, 3), 2.0, 0.5, "text", "t\n" * 90, True, 1j, None)
    others = ({"a", "b", "c"}, {"a": [1, "b"]}, lambda: None, np.array([None]))
    again = (
        np.asfortranarray(plain[0]),
        2,
        np.float32(0.5),
        np.str_("text"),
        "t\n" * 90,
        np.True_,
        1j,
        None,
    )
    given: dict[str, Any] = {"fun": lambda X, *_: rastrigin(X), "path": tmp_path / "run.npz"}
    whole = saved(**given, args=(*plain, *others))
    assert_same(saved(**given, args=(*again, {"d"}, {}, lambda: 0, np.array([1, {}]))), whole)
    for i, other in enumerate((np.arange(6.0), 2.5, 0.25, "texts", "t " * 90, False, 2j, 0)):
        with pytest.raises(ValueError, match="is of a search with args="):
            saved(**given, args=(*plain[:i], other, *plain[i + 1 :], *others))
    given = {"fun": lambda X, d: rastrigin(X) + d["by"], "path": tmp_path / "dict.npz"}
    saved(**given, args=({"by": 1},))
    with pytest.raises(ValueError, match="fun must be that of the checkpoint"):
        saved(**given, args=({"by": 2},))


AT = 1.0


class Model:
    def __init__(self, at: float) -> None:
        self.at = at

    def __call__(self, X: Any) -> Any:
        return ((X - self.at) ** 2).sum(axis=-1)

    def loss(self, X: Any) -> Any:
        return self(X)


def by_a_global(X: Any) -> Any:
    return Model(AT)(X)


def with_a_default(at: float) -> Any:
    def fun(X: Any, at: float = at) -> Any:
        return Model(at)(X)

    return fun


def edited(at: float) -> Any:
    """Return a function as a notebook has it when its cell is run again."""
    cell: dict[str, Any] = {"__name__": "__main__"}
    exec(f"def fun(X):\n    return ((X - {at}) ** 2).sum(axis=-1)", cell)
    return cell["fun"]


NAMELESS: dict[str, Any] = {
    "partial": lambda at: functools.partial(lambda X, at: Model(at)(X), at=at),
    "object": Model,
    "method": lambda at: Model(at).loss,
    "closure and default": with_a_default,
    "lambda": lambda at: lambda X: Model(at)(X),
    "edited": edited,
}


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize("make", NAMELESS.values(), ids=NAMELESS)
def test_another_function_of_the_same_name_is_refused_by_its_values(
    make: Any, vectorized: bool, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"checkpoint": tmp_path / "run.npz", "vectorized": vectorized}
    first = run(make(1), n_gen=4, **given)
    before = given["checkpoint"].read_bytes()
    for n_gen in (4, 8):
        with pytest.raises(
            ValueError,
            match=r"fun must be that of the checkpoint, got [\d.]+ of .* has [\d.]+: name",
        ):
            run(make(2), n_gen=n_gen, **given)
    assert given["checkpoint"].read_bytes() == before
    assert_same(run(make(1), n_gen=4, **given), first)
    assert_same(run(make(1), n_gen=8, **given), run(make(1), n_gen=8, vectorized=vectorized))


def test_a_changed_global_is_another_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {"checkpoint": tmp_path / "run.npz"}
    run(by_a_global, **given)
    run(by_a_global, **given)
    monkeypatch.setitem(globals(), "AT", 2.0)
    with pytest.raises(ValueError, match="fun must be that of the checkpoint"):
        run(by_a_global, **given)


@pytest.mark.parametrize("vectorized", [True, False])
def test_the_last_generation_is_asked_for_again_and_not_counted(
    vectorized: bool, tmp_path: Path
) -> None:
    seen: list[Any] = []

    def fun(x: Any) -> Any:
        seen.append(np.copy(x))
        return ((x - 0.5) ** 2).sum(axis=-1)

    given: dict[str, Any] = {"vectorized": vectorized, "checkpoint": tmp_path / "run.npz"}
    run(fun, **given, n_gen=4)
    last = np.array(seen[-1] if vectorized else seen[-20:])
    values = ((last - 0.5) ** 2).sum(axis=1)
    seen.clear()
    assert_same(run(fun, **given, n_gen=4), run(fun, n_gen=4, vectorized=vectorized))
    asked = last if vectorized else last[sorted([values.argmin(), values.argmax()])]
    np.testing.assert_array_equal(seen[0] if vectorized else seen[:2], asked)
    assert_same(run(fun, **given, n_gen=9), run(fun, n_gen=9, vectorized=vectorized))


def test_the_seconds_of_what_is_asked_again_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def fun(x: Any) -> float:
        now[0] += 1
        return point(x)

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    given: dict[str, Any] = {"checkpoint": tmp_path / "run.npz"}
    run(fun, **given)
    assert run(fun, **given, n_gen=99, max_seconds=21).nit == 5 + 2  # a generation takes 20


def test_noise_is_warned_of_and_a_rounding_is_neither_noise_nor_another_function(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(3)
    given: dict[str, Any] = {
        "x0": X0,
        "seed": 1,
        "n_gen": 6,
        "vectorized": True,
        "checkpoint": tmp_path / "run.npz",
    }

    def noisy(X: Any, size: float = 1.0) -> Any:
        return rastrigin(X) + size * rng.random(len(X))

    first = minimize(noisy, **given)
    with pytest.warns(
        RuntimeWarning, match=r"fun has noise: it returns [\d.]+ and [\d.]+ of the same"
    ) as caught:
        again = minimize(noisy, **given)
    assert [warning.filename for warning in caught] == [__file__]
    assert_same(again, first)
    given |= {"checkpoint": tmp_path / "fine.npz"}
    minimize(functools.partial(noisy, size=1e-5), **given)
    calls: list[Any] = []
    minimize(functools.partial(lambda X: calls.append(X) or noisy(X, 1e-5)), **given)
    assert len(calls) == 1
    with pytest.raises(ValueError, match="fun must be that"):
        minimize(functools.partial(lambda X: rastrigin(X) * (1 + 2e-6)), **given)


def test_what_rounds_by_a_part_of_the_largest_value_is_the_same_function(tmp_path: Path) -> None:
    """Also where the lowest value is zero."""

    def fun(X: Any, by: float = 0.0) -> Any:
        return np.arange(len(X)) + by

    first = saved(tmp_path / "run.npz", fun, n_gen=3)
    assert_same(saved(tmp_path / "run.npz", functools.partial(fun, by=1e-6), n_gen=3), first)
    with pytest.raises(ValueError, match="fun must be that of the checkpoint"):
        saved(tmp_path / "run.npz", functools.partial(fun, by=1e-3), n_gen=3)


def test_values_of_the_file_that_are_not_finite_are_not_compared(tmp_path: Path) -> None:
    def fun(X: Any, holes: Any = (np.nan, np.inf)) -> Any:
        F = rastrigin(X)
        F[:2] = holes
        return F

    whole = saved(tmp_path / "run.npz", fun, n_gen=4)
    assert_same(saved(tmp_path / "run.npz", functools.partial(fun, holes=(0, 1e9)), n_gen=4), whole)
    with pytest.raises(ValueError, match="got nan of the same point"):
        saved(tmp_path / "run.npz", functools.partial(lambda X: np.full(len(X), np.nan)), n_gen=4)


@pytest.mark.parametrize("method", METHODS)
def test_a_search_that_draws_other_candidates_here_is_refused_and_says_why(
    method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, plain = tmp_path / "run.npz", saved(None, method=method)  # type: ignore[arg-type]
    first, kind = saved(path, method=method, n_gen=7), type(optimizer(method, X0))
    sample = kind._sample
    monkeypatch.setattr(checkpoints, "get_host_cpu_name", lambda: "abacus")
    monkeypatch.setattr(cma, "__version__", "0.1")
    with monkeypatch.context() as patch:  # another rounding
        patch.setattr(
            kind, "_sample", lambda self: sample(self) * (1 + 2.0**-52 * (self.generation == 6))
        )
        with pytest.raises(
            ValueError, match=r"cannot go on, .*processor .* became abacus"
        ) as caught:
            saved(path, never, method=method)
    assert ("cma" in str(caught.value)) == method.endswith("cma-es")
    assert f"np.load({str(path)!r})['x'] of value {first.fun}" in str(caught.value)
    np.testing.assert_array_equal(np.load(path)["x"], first.x)
    assert first.fun == pytest.approx(rastrigin(first.x[None])[0], rel=1e-12)
    assert_same(saved(path, method=method), plain)


def test_limits_may_change_and_the_seed_may_be_left_out(tmp_path: Path) -> None:
    plain = saved(None, n_gen=9)  # type: ignore[arg-type]
    assert saved(tmp_path / "run.npz", n_gen=4).reason == "n_gen"
    given: dict[str, Any] = {"n_gen": 9, "sigma_min": 0, "reading": Reading(n_gen=3)}
    assert_same(saved(tmp_path / "run.npz", **given), plain)
    assert_same(saved(tmp_path / "run.npz", n_gen=9, seed=None), plain)
    fresh = saved(tmp_path / "other.npz", n_gen=4, seed=None)
    assert_same(saved(tmp_path / "other.npz", seed=None), saved(None, seed=fresh.seed))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "limit", [{"max_nfev": 150}, {"max_stagnation": 2}, {"target": 30.0}], ids=str
)
def test_limits_count_what_was_before_the_checkpoint(limit: dict[str, Any], tmp_path: Path) -> None:
    plain = saved(None, lambda X: np.round(rastrigin(X), -1), **limit)  # type: ignore[arg-type]
    assert 2 < plain.nit < 12
    for generations in (2, plain.nit - 1):
        path = tmp_path / f"{generations}.npz"
        saved(path, lambda X: np.round(rastrigin(X), -1), n_gen=generations)
        assert_same(saved(path, lambda X: np.round(rastrigin(X), -1), **limit), plain)


def test_a_search_with_an_automatic_step_size_goes_on_with_the_one_it_has(tmp_path: Path) -> None:
    whole = saved(None, sphere, sigma0="auto")  # type: ignore[arg-type]
    saved(tmp_path / "run.npz", sphere, sigma0="auto", n_gen=3)
    told: list[Any] = []
    rest = saved(
        tmp_path / "run.npz", lambda X: told.extend(X) or sphere(X), sigma0="auto", seed=None
    )
    assert len(told) == (1 + 9) * 20
    assert_same(rest, whole)


def test_a_search_that_nan_or_a_callback_has_ended_goes_on(tmp_path: Path) -> None:
    values = iter([1e6, 1e6, np.nan])
    result = saved(tmp_path / "nan.npz", lambda X: np.full(len(X), next(values)))
    assert (result.reason, result.nit) == ("nan", 3)
    again = saved(tmp_path / "nan.npz")
    assert (again.reason, again.nit, again.n_nan, again.fun < 1e3) == ("n_gen", 12, 20, True)

    def third(intermediate_result: Any) -> None:
        if intermediate_result.nit == 3:
            raise StopIteration

    path = tmp_path / "callback.npz"
    ended = saved(path, callback=third)
    assert (ended.reason, ended.nit) == ("callback", 3)
    assert_same(saved(path, callback=third), ended)
    assert_same(saved(path), saved(None))  # type: ignore[arg-type]


def test_an_optimizer_that_is_given_goes_on_from_the_file(tmp_path: Path) -> None:
    def begun() -> LEAMVD:
        opt = LEAMVD(X0, seed=1, n_gen=20)
        minimize(rastrigin, method=opt, vectorized=True, max_nfev=50)
        return opt

    given: dict[str, Any] = {"vectorized": True, "checkpoint": tmp_path / "run.npz"}
    minimize(rastrigin, method=begun(), max_nfev=150, **given)
    assert_same(
        minimize(rastrigin, method=begun(), **given),
        minimize(rastrigin, method=begun(), vectorized=True),
    )
    with pytest.raises(ValueError, match="generation=2, got 0"):
        minimize(never, method=LEAMVD(X0, seed=1, n_gen=20), **given)
    opt = begun()
    minimize(rastrigin, method=opt, **given)
    with pytest.raises(
        ValueError, match="generation=2, got 20: give an optimizer that is where that one was"
    ):
        minimize(never, method=opt, **given)


def test_each_file_that_draws_candidates_is_in_the_digest_of_a_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: dict[str, Any] = {}
    monkeypatch.setattr(sources, "digest", lambda trees: taken.update(trees) or "0" * 64)
    checkpoints._code.__wrapped__()
    package = Path(leamvd.__file__).parent
    left = {path.stem for path in (package / "optimizers").glob("*.py")} - {
        Path(name).stem for name in taken
    }
    assert left == {"checkpoints", "evaluation", "local_model", "minimize"}
    assert {
        f"leamvd/_support/{name}.py" for name in ("checks", "compile", "threads")
    } <= taken.keys()


@pytest.mark.parametrize("checkpoint", ["", ".", 3], ids=str)
def test_a_checkpoint_is_a_file(
    checkpoint: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ValueError, match=f"checkpoint must be the name of a file, got .*{checkpoint!r}"
    ):
        run(never, checkpoint=checkpoint)


@pytest.mark.parametrize(
    "given",
    [
        {"x0": np.full(9, 1e25), "dtype": "float32"},
        {"x0": np.full(9, 1e155), "sigma_min": 0},
        {"x0": None, "n_var": 9, "bounds": (-1e200, 1e200)},
    ],
)
def test_points_whose_squares_overflow_are_refused_before_one_is_nan(given: dict[str, Any]) -> None:
    seen: list[Any] = []
    with pytest.raises(OverflowError, match="scale the variables") as caught:
        run(
            lambda X: seen.extend(X.copy()) or np.abs(X).max(axis=1),
            vectorized=True,
            n_gen=30,
            **given,
        )
    assert np.isfinite(seen).all()
    assert caught.value.result.fun == np.abs(seen).max(axis=1).min()  # type: ignore[attr-defined]


def test_a_full_disk_leaves_the_earlier_checkpoint_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, plain = tmp_path / "run.npz", saved(None)  # type: ignore[arg-type]
    saved(path, n_gen=3)
    before = path.read_bytes()

    def full(target: Any, *_: Any, **__: Any) -> None:
        target.write(b"half of")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoints.np, "savez", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        saved(path)
    assert caught.value.result.nit == 4  # type: ignore[attr-defined]
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
    monkeypatch.undo()
    (tmp_path / "link").symlink_to(path)
    assert_same(saved(tmp_path / "link"), plain)
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    "damage", [b"", b"a text", "half", "flipped", "other arrays", "older"], ids=str
)
def test_a_file_that_is_no_checkpoint_is_refused_and_left_as_it_is(
    damage: Any, tmp_path: Path
) -> None:
    path = tmp_path / "run.npz"
    saved(path, n_gen=3)
    whole = bytearray(path.read_bytes())
    if damage == "other arrays":
        np.savez(path, header=np.array("{}"), F=np.zeros(3))
    elif damage == "older":
        with np.load(path) as file:
            np.savez(path, **{name: file[name] for name in ("header", "F", "counts")})
    else:
        whole[len(whole) // 2] ^= 255
        path.write_bytes({"half": whole[: len(whole) // 2], "flipped": whole}.get(damage, damage))
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match=r"cannot be read as one .*: name another file, or delete this one"
    ):
        saved(path, never)
    assert path.read_bytes() == before


# ---- what the function returns


def test_a_function_of_columns_is_told_to_transpose() -> None:
    def columns(X: Any) -> Any:
        return (X**2).sum(axis=0)

    with pytest.raises(ValueError, match=r"must have shape \(24,\), got \(6,\)") as caught:
        run(columns, vectorized=True)
    assert "lambda X: fun(X.T)" in caught.value.__notes__[0]
    assert run(lambda X: columns(X.T), vectorized=True).nit == 5


@pytest.mark.parametrize("module", ["minimize", "lea_mvd"])
def test_the_example_runs(module: str) -> None:
    found = doctest.testmod(sys.modules[f"leamvd.optimizers.{module}"])
    assert (found.failed, found.attempted > 2) == (0, True)
