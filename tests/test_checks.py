"""Values that the checks of arguments take; those that they refuse are in `test_messages`."""

from typing import Any

import numpy as np
import pytest

from leamvd._support import checks


@pytest.mark.parametrize(
    ("limits", "value"), [({"at_least": 0}, 0), ({"above": 0}, 1e-9), ({"at_most": 1}, 1), ({"below": 1}, 0.9)]
)
def test_numbers_within_their_range_become_pythons(limits: dict[str, float], value: float) -> None:
    assert checks.real("x", value, **limits) == value
    assert type(checks.real("x", np.float32(0.5))) is float
    assert checks.real("x", 0.1, above=0, dtype="float32") == 0.1, "itself, not rounded"
    assert checks.integer("n", np.int64(3), at_least=3, at_most=3) == 3
    assert type(checks.integer("n", np.int64(3))) is int
    assert checks.choice("mode", "a", ("a", "b")) == "a"


def test_an_array_that_fits_is_returned_itself() -> None:
    given = np.ones((2, 3))
    assert checks.array("X", given, shape=(None, 3), dtype=np.float64) is given
    assert checks.array("X", [[1, 2]], shape=(1, None), dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize("value", [np.ma.masked_array([1.0, 2.0]), [1, 2], np.array([1, 2], np.uint8)], ids=repr)
def test_what_an_array_can_hold_is_taken(value: Any) -> None:
    result = checks.array("x", value, shape=(2,), dtype=np.float32)
    np.testing.assert_array_equal(result, [1, 2])
    assert type(result) is np.ndarray


def test_numbers_may_be_nan_and_integers_rounded_where_that_is_said() -> None:
    assert np.isnan(checks.numbers("x", [np.nan, np.inf], shape=(2,), dtype=np.float64)[0])
    found = checks.numbers("x", [10**18, 2**53 + 1], shape=(2,), dtype="float64", rounded=True)
    assert found.tolist() == [1e18, 2.0**53]


def test_a_link_is_followed_to_its_file(tmp_path: Any) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("file", "link"):
        assert checks.file("path", tmp_path / name) == tmp_path.resolve() / "file"
