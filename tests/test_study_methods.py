"""Methods: what text says is what runs, and the other way round."""

import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leamvd.networks.contrastive_divergence import CDSettings
from leamvd.networks.dbn import METHODS, Training
from leamvd.optimizers.reading import Reading
from leamvd_paper.studies.natural_evolution import METHODS as STRATEGIES
from leamvd_paper.studies.study_methods import (
    _SETTINGS,
    PRESET,
    PRESETS,
    TRAINERS,
    Method,
    trainer_of,
)

HINTS = get_type_hints(Training) | get_type_hints(Reading) | {PRESET: Literal[PRESETS]}
SHARES = ("momentum", "final_momentum")
START = {
    "x0_epochs": "epochs",
    "x0_batches": "batch",
    "x0_limit": "none",
}  # the start solution that a setting belongs to


def values(name: str) -> st.SearchStrategy[Any]:
    if name == "reset":
        return st.sampled_from(["initial", "off"]) | st.floats(1e-300, 1e300)
    if get_origin(HINTS[name]) is Literal:
        return st.sampled_from([value for value in get_args(HINTS[name]) if value is not None])
    if HINTS[name] is bool:
        return st.booleans()
    if HINTS[name] in (int, int | None):
        return st.integers(2, 10**6)
    if name == "perturbation_share":
        return st.floats(1e-30, 1)
    return st.floats(0, 0.999) if name in SHARES else st.floats(1e-30, 1e30)


@st.composite
def methods(draw: st.DrawFn) -> Method:
    trainer = draw(st.sampled_from(METHODS))
    names = draw(st.lists(st.sampled_from(_SETTINGS[trainer]), unique=True))
    own = {name: draw(values(name)) for name in names}
    for name, x0 in START.items():
        if own.get("x0", "epochs") != x0:
            own.pop(name, None)
    return Method(trainer, tuple(own.items()))


@given(methods())
def test_a_method_prints_what_is_parsed_as_the_same(method: Method) -> None:
    again = Method.parse(str(method))
    assert again == method
    assert [type(value) for _, value in again.settings] == [
        type(value) for _, value in method.settings
    ]
    assert str(again) == str(method)


@given(methods())
def test_a_method_changes_what_it_names_and_nothing_else(method: Method) -> None:
    base = Training(dtype="float64"), Reading(n_gen=7, exponent=2.0)
    found = {
        **dataclasses.asdict(method.training(base[0])),
        **dataclasses.asdict(method.reading(base[1])),
    }
    for name, value in method.settings:
        assert name == PRESET or found[name] == value
    own, shown = Method(method.trainer), {name for name, _ in method.settings}
    unchanged = {
        **dataclasses.asdict(own.training(base[0])),
        **dataclasses.asdict(own.reading(base[1])),
    }
    if PRESET not in shown:
        assert {name for name in found if found[name] != unchanged[name]} <= shown


def test_a_whole_number_is_the_float_that_a_setting_takes() -> None:
    assert (
        repr(Method.parse("lea-mvd:sigma0=1+reset=2").settings)
        == "(('sigma0', 1.0), ('reset', 2.0))"
    )
    assert (
        str(Method.parse("lea-mvd:sigma0=1.0+x0_in_population=false"))
        == "lea-mvd:sigma0=1+x0_in_population=false"
    )


def test_a_preset_is_changed_by_what_stands_with_it_in_any_order() -> None:
    base = Reading(n_gen=4, ties="newest")
    printed = dataclasses.replace(Reading.printed(), n_gen=4, ties="newest", shift="toward_best")
    for text in ("lea-mvd:printed+shift=toward_best", "lea-mvd:shift=toward_best+printed"):
        assert Method.parse(text).reading(base) == printed
    assert Method.parse("lea-mvd:default").reading(base) == base
    assert not Method.parse("cma-es:x0-excluded").reading(base).x0_in_population
    # which would leave open what a study has settled
    for text in ("lea-mvd:limits=null", "lea-mvd:n_gen=null"):
        with pytest.raises((ValueError, TypeError), match="must be"):
            Method.parse(text)


OF_CD = {field.name for field in dataclasses.fields(CDSettings)}
OF_START = {"sigma0", "x0", "x0_epochs", "x0_batches", "x0_limit"}
COMPUTED = {"dtype", "backend", "device", "precision"}
OF_READING = {field.name for field in dataclasses.fields(Reading)}
SEEN = {
    "cd": OF_CD | {"n_gen", "dtype"},
    "lea-mvd": OF_CD | OF_START | COMPUTED | OF_READING | {"n_elite"},
    **dict.fromkeys(STRATEGIES, COMPUTED | {"sigma0", "population_size"}),
}
OF_OTHERS = OF_CD | OF_START | COMPUTED | {"population_size", "n_gen", "x0_in_population"}
"""What a trainer sees of a study's settings; `OF_OTHERS` is that of the other searches."""


def another(name: str, usual: Any) -> Any:
    """Return a value of a setting that is not its default."""
    if name == "reset":
        return "off"
    if get_origin(HINTS[name]) is Literal:
        return next(value for value in get_args(HINTS[name]) if value not in (usual, None))
    if isinstance(usual, bool):
        return not usual
    if usual is None:
        return 11
    return usual / 2 if isinstance(usual, float) else usual + 1


def other_settings() -> list[tuple[Training, Reading]]:
    """Return settings none of which is a default but for those of other starts, for each start."""
    changed = {}
    for owner in (CDSettings, Reading):
        for field in dataclasses.fields(owner):
            changed[field.name] = another(field.name, field.default)
    of_cd = {name: changed[name] for name in OF_CD} | {"n_elite": 5, "sigma0": 0.7}
    reading = Reading(**{name: changed[name] for name in OF_READING})
    found = []
    for start in (
        {"x0": "none", "x0_limit": 0.4},
        {"x0": "batch", "x0_batches": 7},
        {"x0_epochs": 3},
    ):
        found.append((Training(**of_cd, **start, dtype="float64"), reading))
    return found


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_trainer_has_of_a_studys_settings_those_that_it_sees_and_else_defaults(
    trainer: str,
) -> None:
    seen = SEEN.get(trainer, OF_OTHERS)
    for training, reading in other_settings():
        asked = vars(training) | vars(reading)
        usual = vars(Training()) | vars(Reading())
        expected = {name: (asked if name in seen else usual)[name] for name in asked}
        if trainer != "cd":  # spelled out, whatever this machine would choose
            expected |= training.computation._asdict()
        method = Method(trainer)
        assert vars(method.training(training)) | vars(method.reading(reading)) == expected
        told = method.spelled(training, reading)
        listed = seen - {"population_size"} if trainer in STRATEGIES else seen
        assert told["training"] | told["reading"] == {name: expected[name] for name in listed}
        assert {*told["reading"]} == listed & OF_READING


def test_spelled_settings_leave_nothing_open() -> None:
    assert Method("lea-mvd").spelled(Training(), Reading())["reading"] == vars(Reading().complete())
    assert Method("cd").spelled(Training(), Reading())["reading"] == {
        "n_gen": Reading().complete().n_gen
    }


def test_some_settings_can_be_left_out() -> None:
    method = Method.parse("lea-mvd:printed+sigma0=0.01+n_gen=50+reset=off")
    assert str(method.without("n_gen", "sigma0")) == "lea-mvd:printed+reset=off"
    assert str(method.without("path")) == str(method)
    assert str(method.without(PRESET, "sigma0", "n_gen", "reset")) == "lea-mvd"
    for text in ("cma-es:n_gen=42", "cma-es", "start"):
        assert trainer_of(text) == text.split(":", maxsplit=1)[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sgd", "methods must be one of"),
        ("cd:sigma0=0.1", "a setting in methods"),
        ("cma-es:n_elite=3", "a setting in methods"),
        ("lea-mvd:dtype=float64", "a setting in methods"),
        ("lea-mvd:papers", "a preset in methods"),
        ("cd:printed", "a setting in methods"),
        ("lea-mvd:sigma0=0.1+sigma0=0.2", "once, got sigma0 twice"),
        ("lea-mvd:printed+default", "once, got preset twice"),
        ("lea-mvd:sigma0=0", "sigma0 must be"),
        ("lea-mvd:exponent=-1", "exponent must be"),
        ("lea-mvd:", ""),
    ],
)
def test_texts_that_are_no_method_are_refused(text: str, words: str) -> None:
    if words:
        with pytest.raises(ValueError, match=words):
            Method.parse(text)
    else:
        assert Method.parse(text) == Method("lea-mvd")
