"""Readings: defaults, presets, values that they take."""

import dataclasses
import re
from pathlib import Path

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
ITEMS = {field.name: field.metadata["item"] for field in dataclasses.fields(Reading)}
RECOMMENDED = {"population_size": 8, "reset": "off", "perturbation": "added"}


def test_the_defaults_and_the_bold_values_are_those_of_the_page_of_items() -> None:
    page = (Path(__file__).parents[1] / "book" / "items.md").read_text(encoding="utf-8")
    row = r"^\* - (?:\(item-r\d+\)=\n    )?(\w+)\n  - `(\w+)`\n  - `(.+)`\n  - (.+)$"
    found = {
        name: own for item, name, *own in re.findall(row, page, re.MULTILINE) if item == ITEMS[name]
    }
    assert found.keys() == ITEMS.keys()
    usual, printed = Reading().complete(), Reading.printed().complete()
    for name, (default, others) in found.items():
        bold = re.search(r"\*\*`(.+)`\*\*", others)
        assert getattr(usual, name) == eval(default)
        assert getattr(printed, name) == eval(bold[1] if bold else default)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("default", {}),
        ("printed", PRINTED),
        ("x0-excluded", {"x0_in_population": False}),
        ("recommended", RECOMMENDED),
    ],
)
def test_a_preset_changes_the_default_or_another_reading(
    name: str, changes: dict[str, object]
) -> None:
    assert Reading.named(name) == dataclasses.replace(Reading(), **changes)
    base = Reading(n_gen=7, limits="reflect", ties="newest", shift="printed")
    assert Reading.named(name, base) == dataclasses.replace(base, **changes)
    assert Reading.printed() == Reading.named("printed")
    assert Reading.recommended() == Reading.named("recommended")


def test_a_reading_prints_what_acts_and_stars_what_was_changed() -> None:
    """Its search limits are filled in where nothing is said of them, which changes nothing."""
    for reading, changed in (
        (Reading(), {}),
        (Reading(exponent=2.0, reset="off"), {"exponent": "2.0", "reset": "off"}),
        (Reading(n_gen=30, limits="first"), {"n_gen": "30", "limits": "first"}),
    ):
        rows = [line.split() for line in str(reading).splitlines()]
        values = {name: value for _, name, value, *_ in rows}
        assert values == {name: str(value) for name, value in vars(reading.complete()).items()}
        assert {name: value for _, name, value, star, *_ in rows if star == "*"} == changed
        for item, name, *_ in rows:
            assert Reading.__dataclass_fields__[name].metadata["item"] == item


def test_readings_are_values() -> None:
    assert Reading() == Reading(population_size=24, reset=1)
    for reading in (
        Reading(),
        Reading.printed(),
        Reading(reset="off", exponent=0),
        Reading(reset=0.25),
    ):
        assert eval(repr(reading)) == reading
        assert hash(eval(repr(reading))) == hash(reading)
    assert (
        Reading().complete()
        == Reading(limits="first").complete()
        == Reading(n_gen=30, limits="first")
    )
    assert LEAMVD([0.0], reading=Reading(n_gen=50)).reading == Reading(n_gen=50, limits="first")
    with pytest.raises(dataclasses.FrozenInstanceError):
        Reading().exponent = 2.0  # type: ignore[misc]
