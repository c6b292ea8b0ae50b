import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from leamvd import Reading


def test_the_defaults_are_the_bold_ones() -> None:
    assert dataclasses.asdict(Reading()) == {
        "population_size": 24,
        "n_gen": 30,
        "convergence": "scaled",
        "sigma_norm": "euclidean",
        "shift": "toward_best",
        "orientation": "oriented",
        "n_descent_rows": 4,
        "first_direction": "zero",
        "descent_scale": "literal",
        "step": "mean",
        "projections": "distinct",
        "beta1_at_one": "printed",
        "reset": 1.0,
        "elites": "keep",
        "limits": "first",
        "x0_in_population": True,
        "perturbation": "entry",
        "ties": "keep",
        "exponent": 1.5,
        "path": "on",
        "descent": "orthogonal",
    }


def test_the_printed_reading_differs_where_the_letter_can_be_run() -> None:
    default, printed = dataclasses.asdict(Reading()), dataclasses.asdict(Reading.printed())
    assert {name: value for name, value in printed.items() if value != default[name]} == {
        "shift": "printed",
        "projections": "repeated",
        "elites": "reevaluate",
        "x0_in_population": False,
        "perturbation": "column",
    }


def test_every_item_has_one_field_and_its_paragraph() -> None:
    items = [field.metadata["item"] for field in dataclasses.fields(Reading)]
    ambiguities = [item for item in items if item != "C11"]  # the claim's ablations
    assert sorted(ambiguities, key=lambda item: int(item[1:])) == [f"R{i}" for i in range(1, 20)]
    paragraphs = inspect.cleandoc(Reading.__doc__ or "").split("Attributes")[1].split("Raises")[0]
    for field in dataclasses.fields(Reading):
        assert f"{field.name} :" in paragraphs
        assert f"    {field.metadata['item']}. " in paragraphs


@pytest.mark.parametrize(
    "reading", [Reading(), Reading.printed(), Reading(reset="off", exponent=0), Reading(reset=0.25)]
)
def test_a_reading_survives_json(reading: Reading, tmp_path: Path) -> None:
    assert Reading.from_json(reading.to_json()) == reading
    path = tmp_path / "reading.json"
    path.write_text(reading.to_json(), encoding="utf-8")
    assert Reading.named(str(path)) == reading
    assert eval(repr(reading)) == reading
    assert hash(Reading.from_json(reading.to_json())) == hash(reading)


def test_readings_compare_by_value() -> None:
    assert Reading() == Reading(population_size=24, reset=1)
    assert Reading() != Reading.printed()
    assert Reading.named("default") == Reading()
    assert Reading.named("printed") == Reading.printed()
    with pytest.raises(dataclasses.FrozenInstanceError):
        Reading().exponent = 2.0  # type: ignore[misc]


def test_what_a_json_leaves_out_takes_its_default() -> None:
    assert Reading.from_json('{"exponent": 2}') == Reading(exponent=2.0)


def test_a_reading_prints_one_line_an_item_and_marks_what_differs() -> None:
    lines = str(Reading(exponent=3.0, limits="clip")).splitlines()
    assert [line.split()[0] for line in lines] == [*(f"R{i}" for i in range(1, 20)), "C11", "C11"]
    assert [line.split()[0] for line in lines if "*" in line] == ["R15", "R19"]
    assert "limits" in lines[14]
    assert "clip" in lines[14]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"exponent": -0.1}, ValueError, "exponent must be a finite number >= 0, got -0.1"),
        ({"exponent": "1.5"}, TypeError, "exponent must be a number, got '1.5'"),
        ({"reset": 0}, ValueError, "reset must be a finite number > 0, got 0"),
        ({"reset": "never"}, TypeError, "reset must be a number, got 'never'"),
        ({"population_size": 1}, ValueError, "population_size must be an integer >= 2, got 1"),
        ({"n_gen": 0}, ValueError, "n_gen must be an integer >= 1, got 0"),
        ({"n_descent_rows": 5}, ValueError, "n_descent_rows must be one of 4, 3, got 5"),
        ({"n_descent_rows": True}, ValueError, "n_descent_rows must be one of 4, 3, got True"),
        ({"x0_in_population": 1}, ValueError, "x0_in_population must be one of True, False, got 1"),
        ({"limits": "wrap"}, ValueError, "limits must be one of 'first', 'clip', 'reflect', got 'wrap'"),
        ({"ties": None}, ValueError, "ties must be one of 'keep', 'newest', got None"),
        ({"descent": "on"}, ValueError, "descent must be one of 'orthogonal', 'free', 'off', got 'on'"),
    ],
)
def test_impossible_values_are_named(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Reading(**options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a reading must be a JSON object"),
        ("[1]", r"a reading must be a JSON object, got '\[1\]'"),
        (json.dumps({"exponents": 2, "x": 1}), "fields must be among .*, got exponents, x"),
        ('{"ties": "oldest"}', "ties must be one of 'keep', 'newest', got 'oldest'"),
    ],
)
def test_json_that_is_no_reading_is_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Reading.from_json(text)


def test_a_name_that_is_neither_preset_nor_file_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"reading must be .default., .printed., .x0-excluded. or a JSON file, got .prnted."
    ):
        Reading.named("prnted")
