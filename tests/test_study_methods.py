"""Methods: what text says is what runs, and the other way round."""

import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leamvd.networks.dbn import METHODS, Training
from leamvd.optimizers.reading import Reading
from leamvd_paper.studies.study_methods import _SETTINGS, PRESET, PRESETS, Method

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
