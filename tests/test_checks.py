"""Every error names the argument, the rule and the value."""

import re
from typing import Any

import numpy as np
import pytest

from leamvd._support import checks


def test_integer() -> None:
    assert checks.integer("n", np.int64(3), at_least=1) == 3
    assert type(checks.integer("n", np.int64(3))) is int
    for value in (True, np.True_, 1.0, "1", None):
        with pytest.raises(TypeError, match=r"^n must be an integer, got "):
            checks.integer("n", value)
    with pytest.raises(ValueError, match=r"^n must be an integer >= 1 and <= 4, got 5$"):
        checks.integer("n", 5, at_least=1, at_most=4)
    with pytest.raises(ValueError, match=r">= 1, got 0$"):
        checks.integer("n", 0, at_least=1)


@pytest.mark.parametrize(
    ("limits", "good", "bad", "rule"),
    [
        ({"at_least": 0}, 0, -1e-9, ">= 0"),
        ({"above": 0}, 1e-9, 0, "> 0"),
        ({"at_most": 1}, 1, 1.1, "<= 1"),
        ({"below": 1}, 0.9, 1, "< 1"),
        ({}, -5, np.inf, ""),
        ({}, -5, np.nan, ""),
    ],
)
def test_real(limits: dict[str, float], good: float, bad: float, rule: str) -> None:
    assert checks.real("x", good, **limits) == good
    with pytest.raises(ValueError, match=rf"^x must be a finite number {rule}".rstrip()) as error:
        checks.real("x", bad, **limits)
    assert repr(bad) in str(error.value)


def test_real_types() -> None:
    assert type(checks.real("x", np.float32(0.5))) is float
    for value in ("1", b"1", True, None, [1, 2], 1 + 2j, np.complex64(1)):
        with pytest.raises(TypeError, match=r"^x must be a number, got"):
            checks.real("x", value)
    with pytest.raises(ValueError, match=r"^x must be a finite number, got 1000"):
        checks.real("x", 10**400)


@pytest.mark.parametrize("value", [1e300, 1e-60])
def test_a_number_must_be_in_range_as_the_dtype_holds_it(value: float) -> None:
    assert checks.real("x", value, above=0) == value
    with pytest.raises(ValueError, match=rf"^x must be a finite number > 0 in float32, got {re.escape(repr(value))}$"):
        checks.real("x", value, above=0, dtype="float32")
    assert checks.real("x", 0.1, above=0, dtype="float32") == 0.1, "itself, not rounded"


def test_choice() -> None:
    assert checks.choice("mode", "a", ("a", "b")) == "a"
    with pytest.raises(ValueError, match=r"^mode must be one of 'a', 'b', got 'c'$"):
        checks.choice("mode", "c", ("a", "b"))
    with pytest.raises(ValueError, match=r"got 1$"):  # equal to True, but not one of the options
        checks.choice("flag", 1, (True, False))


def test_array() -> None:
    given = np.ones((2, 3))
    assert checks.array("X", given, shape=(None, 3), dtype=np.float64) is given
    assert checks.array("X", [[1, 2]], shape=(1, None), dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match=r"^X must have shape \(any, 4\), got \(2, 3\)$"):
        checks.array("X", given, shape=(None, 4), dtype=np.float64)
    with pytest.raises(ValueError, match=r"^x must have shape \(3,\), got \(2, 3\)$"):
        checks.array("x", given, shape=(3,), dtype=np.float64)
    given[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"^X must be finite, got nan at index \(1, 2\)$"):
        checks.array("X", given, shape=(2, 3), dtype=np.float64)
    with pytest.raises(TypeError, match=r"^X must be an array of numbers"):
        checks.array("X", "word", shape=(None,), dtype=np.float64)


@pytest.mark.parametrize(
    ("value", "dtype", "error", "message"),
    [
        (
            np.ma.masked_array([1.0, 2.0], [False, True]),
            "float64",
            TypeError,
            r"x must not be masked, got masked_array",
        ),
        (np.array([1.0, 2.0j]), "float64", TypeError, r"x must be an array of real numbers, got array\("),
        ([1.0, 2.0j], "float64", TypeError, r"x must be an array of real numbers"),
        (["1", "2"], "float64", TypeError, r"x must be an array of numbers, got array\("),
        ([1.0, None], "float64", TypeError, r"x must be an array of numbers, got array\("),
        ([1.0, [2.0]], "float64", TypeError, r"x must be an array of numbers, got \[1.0, \[2.0\]\]"),
        ([1.5, 2.0], "int64", TypeError, r"x must be an array of integers, got array\(\[1.5, 2. \]\)"),
        ([True, False], "int64", TypeError, r"x must be an array of integers"),
        (
            [0, 2**53 + 1],
            "float64",
            ValueError,
            r"x must hold integers that float64 tells apart, up to 9007199254740992",
        ),
        (
            [-(2**24) - 1, 0],
            "float32",
            ValueError,
            r"x must hold integers that float32 tells apart, up to 16777216, got",
        ),
        (np.array([1, 2**63], np.uint64), "int64", ValueError, r"x must hold integers that int64 tells apart"),
        ([1e39, 0], "float32", ValueError, r"x must be finite, got inf at index \(0,\)"),
    ],
)
def test_what_an_array_cannot_hold_is_refused(value: Any, dtype: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        checks.array("x", value, shape=(2,), dtype=dtype)


def test_what_an_array_can_hold_is_taken() -> None:
    for value in (np.ma.masked_array([1.0, 2.0]), [1, 2], np.array([1, 2], np.uint8)):
        result = checks.array("x", value, shape=(2,), dtype=np.float32)
        np.testing.assert_array_equal(result, [1, 2])
        assert type(result) is np.ndarray
    assert np.isnan(checks.numbers("x", [np.nan, np.inf], shape=(2,), dtype=np.float64)[0])
    assert checks.array("x", np.array([1, 2], np.int32), shape=(2,), dtype=np.int64).dtype == np.int64


def test_integers_may_be_rounded_where_that_is_said() -> None:
    found = checks.numbers("x", [10**18, 2**53 + 1], shape=(2,), dtype="float64", rounded=True)
    assert found.tolist() == [1e18, 2.0**53]
