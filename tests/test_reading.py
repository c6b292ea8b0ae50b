"""Readings: defaults, presets, values that they take."""

import dataclasses

import pytest

from leamvd import LEAMVD, Reading

PRINTED = {
    "shift": "printed",
    "projections": "repeated",
    "elites": "reevaluate",
    "limits": "first",
    "x0_in_population": False,
    "perturbation": "column",
}
RECOMMENDED = {"population_size": 8, "reset": "initial"}


def test_the_defaults_are_the_bold_ones() -> None:
    assert dataclasses.asdict(Reading()) == {
        "population_size": 24, "n_gen": None, "convergence": "scaled", "sigma_norm": "euclidean",
        "shift": "toward_best", "orientation": "oriented", "n_descent_rows": 4, "first_direction": "zero",
        "descent_scale": "literal", "step": "mean", "projections": "distinct", "beta1_at_one": "printed", "reset": 1.0,
        "elites": "keep", "limits": None, "x0_in_population": True, "perturbation": "entry", "ties": "keep",
        "exponent": 1.5, "path": "on", "descent": "orthogonal",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("default", {}),
        ("printed", PRINTED),
        ("x0-excluded", {"x0_in_population": False}),
        ("recommended", RECOMMENDED),
    ],
)
def test_a_preset_changes_the_default_or_another_reading(name: str, changes: dict[str, object]) -> None:
    assert Reading.named(name) == dataclasses.replace(Reading(), **changes)
    base = Reading(n_gen=7, limits="reflect", ties="newest", shift="printed")
    assert Reading.named(name, base) == dataclasses.replace(base, **changes)
    assert Reading.printed() == Reading.named("printed")
    assert Reading.recommended() == Reading.named("recommended")


def test_readings_are_values() -> None:
    assert Reading() == Reading(population_size=24, reset=1)
    for reading in (Reading(), Reading.printed(), Reading(reset="off", exponent=0), Reading(reset=0.25)):
        assert eval(repr(reading)) == reading
        assert hash(eval(repr(reading))) == hash(reading)
    assert Reading().complete() == Reading(limits="first").complete() == Reading(n_gen=30, limits="first")
    assert LEAMVD([0.0], reading=Reading(n_gen=50)).reading == Reading(n_gen=50, limits="first")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Reading().exponent = 2.0  # type: ignore[misc]
