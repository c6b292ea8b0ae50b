"""Arguments that would be wrong without a word are refused, and what fits is taken as it is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds

from leamvd import LEAMVD, Reading, minimize
from leamvd._support import checks, threads
from leamvd.optimizers import random_streams, selection
from leamvd_paper.data import functions

MASKED = np.ma.masked_equal(np.eye(2), 1)


def lea_mvd(**options: Any) -> LEAMVD:
    return LEAMVD(**{"n_var": 5, "bounds": (-1, 1), "seed": 8, "population_size": 8} | options)


def search(**options: Any) -> Any:
    return minimize(
        lambda x: pytest.fail("was called"), **{"x0": np.ones(3), "seed": 1, "n_gen": 2} | options
    )


def array(value: Any, shape: tuple[int | None, ...] = (2,), dtype: str = "float64") -> Any:
    return checks.array("x", value, shape=shape, dtype=dtype)


REFUSED: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (TypeError, "n must be an integer, got True", lambda: checks.integer("n", True)),
    (TypeError, "n must be an integer, got 1.0", lambda: checks.integer("n", 1.0)),
    (TypeError, "n must be an integer, got 1.5", lambda: checks.count("n", 1.5)),
    (TypeError, "n must be an integer, got inf", lambda: checks.count("n", np.inf)),
    (TypeError, "n must be an integer, got '1'", lambda: checks.integer("n", "1")),
    (
        ValueError,
        "n must be an integer >= 1 and <= 4, got 5",
        lambda: checks.integer("n", 5, at_least=1, at_most=4),
    ),
    (ValueError, "x must be a finite number > 0, got 0", lambda: checks.real("x", 0, above=0)),
    (ValueError, "x must be a finite number < 1, got 1", lambda: checks.real("x", 1, below=1)),
    (ValueError, "x must be a finite number, got inf", lambda: checks.real("x", np.inf)),
    (ValueError, "x must be a finite number, got nan", lambda: checks.real("x", np.nan)),
    (
        ValueError,
        "x must be a finite number > 0, got 0",
        lambda: checks.real("x", 0, above=0, dtype="float64"),
    ),
    (
        ValueError,
        "in float32 > 0, got 1e-60",
        lambda: checks.real("x", 1e-60, above=0, dtype="float32"),
    ),
    (TypeError, "x must be a number, got '1'", lambda: checks.real("x", "1")),
    (TypeError, "x must be a number, got True", lambda: checks.real("x", True)),
    (TypeError, "x must be a number, got None", lambda: checks.real("x", None)),
    (ValueError, "did you mean 'sphere'?", lambda: functions.problem("spheer", 2, 0)),
    (TypeError, "x must be a number, got np.complex64", lambda: checks.real("x", np.complex64(1))),
    (
        ValueError,
        "mode must be one of 'a', 'b', got 'c'",
        lambda: checks.choice("mode", "c", ("a", "b")),
    ),
    (
        ValueError,
        "flag must be one of True, False, got 1",
        lambda: checks.choice("flag", 1, (True, False)),
    ),
    (ValueError, "x must have shape (m, 4), got (2, 2)", lambda: array(np.eye(2), (None, 4))),
    (ValueError, "x must be finite, got nan at index (0, 1)", lambda: array([[1, np.nan]], (1, 2))),
    (
        ValueError,
        "x must be finite, got inf at index (0,)",
        lambda: array([1e39, 0], dtype="float32"),
    ),
    (TypeError, "x must be an array of real numbers", lambda: array(["1", "2"])),
    (TypeError, "x must be an array of real numbers", lambda: array([1j, 2])),
    (TypeError, "x must not be masked", lambda: array(MASKED, (2, 2))),
    (TypeError, "x must not be masked", lambda: array(list(MASKED), (2, 2))),
    (TypeError, "x must not be masked", lambda: array(tuple(MASKED), (2, 2))),
    (
        ModuleNotFoundError,
        "pip install leamvd[sklearn]",
        lambda: checks.needs("it", "leamvd[sklearn]", "no_such_package"),
    ),
    (ValueError, "n_threads must be", lambda: threads.thread_count(0)),
    (ValueError, "seed must be", lambda: random_streams.key(2**64)),
    (ValueError, "exponent must be", lambda: selection.fractional_tournament(3, -1)),
    (
        ValueError,
        "weights must have shape (2,)",
        lambda: selection.mean_and_std(np.eye(2), np.ones(3)),
    ),
    (ValueError, "reset, if not", lambda: Reading(reset=0)),
    (TypeError, "reset, if not", lambda: Reading(reset="never")),  # type: ignore[arg-type]
    (ValueError, "limits must be one of", lambda: Reading(limits="wrap")),  # type: ignore[arg-type]
    (ValueError, "reading must be one of 'default'", lambda: Reading.named("mine")),
    (ValueError, "population_size=8 must be above n_elite=8", lambda: lea_mvd(n_elite=8)),
    (ValueError, "population_size must be > 4", lambda: lea_mvd(population_size=4, n_elite=2)),
    (
        ValueError,
        "reading.limits='clip' needs bounds",
        lambda: LEAMVD(np.zeros(5), reading=Reading(limits="clip")),
    ),
    (ValueError, "x0 and bounds are both missing", lambda: lea_mvd(bounds=None)),
    (ValueError, "must say one number of variables, got 2, 5", lambda: lea_mvd(x0=[1.0, 0.5])),
    (
        ValueError,
        "must say one number of variables, got 4, 5",
        lambda: lea_mvd(bounds=[(0, 1)] * 4),
    ),
    (ValueError, "none of them does: give n_var", lambda: lea_mvd(n_var=None)),
    (ValueError, "float64 between low and high, got 1.0 and 0.0", lambda: lea_mvd(bounds=(1, 0))),
    (
        ValueError,
        "float32 between low and high",
        lambda: lea_mvd(bounds=(0.1, 0.1), dtype="float32"),
    ),
    (
        ValueError,
        "bounds must have shape (n,), got (2, 2)",
        lambda: lea_mvd(bounds=Bounds(np.zeros((2, 2)), 1)),
    ),
    (
        TypeError,
        "reading must be a leamvd.Reading, got 0",
        lambda: search(method="random", reading=0),
    ),
    (ValueError, "got 0.0 and nan at index 2", lambda: lea_mvd(bounds=(0, [1, 1, np.nan, 1, 1]))),
    (ValueError, "of two variables could be", lambda: lea_mvd(bounds=[np.ones(2)] * 2, n_var=2)),
    (ValueError, "x0 must be finite", lambda: lea_mvd(x0=np.full(5, np.nan))),
    (
        ValueError,
        "sigma0 must be a finite number in float32 > 0",
        lambda: lea_mvd(sigma0=1e-60, dtype="float32"),
    ),
    (
        ValueError,
        "dtype must be one of dtype('float32'), dtype('float64')",
        lambda: lea_mvd(dtype="float16"),
    ),
    (TypeError, "reading must be a leamvd.Reading", lambda: lea_mvd(reading="printed")),
    (
        ValueError,
        "reading.reset must be",
        lambda: lea_mvd(reading=Reading(reset=1e300), dtype="float32"),
    ),
    (ValueError, "method must be one of", lambda: search(method="cma")),
    (ValueError, "sigma0, if not a number, must be one of 'auto'", lambda: search(sigma0="aut")),
    (ValueError, "target must be", lambda: search(target=np.nan)),
    (ValueError, "max_seconds must be", lambda: search(max_seconds=0)),
    (ValueError, "max_stagnation must be", lambda: search(max_stagnation=0)),
    (ValueError, "checkpoint_every must be", lambda: search(checkpoint_every=0)),
    (
        OSError,
        "checkpoint='typo/r.npz' must lie in a folder",
        lambda: search(checkpoint="typo/r.npz"),
    ),
    (OSError, "must lie in a folder", lambda: search(checkpoint=f"{__file__}/r.npz")),
    (ValueError, "workers must be", lambda: search(workers=0)),
    (
        TypeError,
        "workers, if not a callable as map, must be an integer",
        lambda: search(workers=2.5),
    ),
]


@pytest.mark.parametrize(
    ("kind", "told", "call"), REFUSED, ids=[f"{told} {i}" for i, (_, told, _) in enumerate(REFUSED)]
)
def test_what_would_be_wrong_without_a_word_is_refused(
    kind: type[Exception], told: str, call: Callable[[], Any]
) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert told in str(caught.value)


def test_numbers_within_their_range_and_options_become_pythons() -> None:
    assert type(checks.real("x", np.float32(0.5), at_least=0, at_most=1)) is float
    assert checks.real("x", 0.1, above=0, dtype="float32") == 0.1, "itself, not rounded"
    assert type(checks.integer("n", np.int64(3), at_least=3, at_most=3)) is int
    assert checks.integer("n", 10**400) == 10**400
    assert type(checks.choice("mode", np.str_("b"), ("a", "b"))) is str
    assert checks.choice("flag", np.False_, (True, False)) is False


def test_an_array_that_fits_is_returned_itself() -> None:
    given = np.ones((2, 3))
    assert checks.array("X", given, shape=(None, 3), dtype=np.float64) is given
    for value in (np.ma.masked_array([1.0, 2.0]), [1, 2], np.array([1, 2], np.uint8)):
        result = checks.array("x", value, shape=(2,), dtype=np.float32)
        np.testing.assert_array_equal(result, [1, 2])
        assert type(result) is np.ndarray
    assert np.isnan(checks.numbers("x", [np.nan, np.inf], shape=(2,), dtype=np.float64)[0])
