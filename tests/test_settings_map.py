"""Section 13: cells of settings, what is run in each, the answers there, and what turns them."""

import dataclasses
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from leamvd.networks.contrastive_divergence import CDSettings, ContrastiveDivergence
from leamvd.networks.dbn import Training, layer_seed
from leamvd.networks.objective import reconstruction_errors
from leamvd.optimizers.reading import Reading
from leamvd_paper.cli import main
from leamvd_paper.studies import results, settings_map
from leamvd_paper.studies.claims import EQUAL, Errors, Margins, Part
from leamvd_paper.studies.layers import Images, timed
from leamvd_paper.studies.results import read_recorded
from leamvd_paper.studies.settings_map import BOOK, CELLS, START, Map
from leamvd_paper.studies.statistics import paired
from leamvd_paper.studies.study_methods import Method

X0 = np.ones(3)

SETTINGS = {
    "plain": CDSettings(batch_size=50, learning_rate=0.2),
    "small": CDSettings(batch_size=20, weight_scale=0.01),
}
TINY = Map(
    images=Images(n_images=200),
    layers=(6, 5, 4),
    seeds=(3,),
    protocols=SETTINGS,
    cells=(("plain", 4), ("small", 10)),
    searched=(("plain", 4),),
    updates=40,
    first_updates=20,
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    return results.tables(settings_map.plan(TINY), tmp_path_factory.mktemp("map"))["runs"]


def ends(runs: pd.DataFrame, **labels: Any) -> pd.Series:
    for name, value in labels.items():
        runs = runs[runs[name] == value]
    return runs.iloc[-1]


def test_a_cell_has_as_many_updates_whatever_its_mini_batches(runs: pd.DataFrame) -> None:
    for name, epochs, first in (("plain", 10, 5), ("small", 4, 2)):
        study = TINY.study(name, 4)
        assert study.reading.n_gen == epochs
        assert study.training.momentum_epochs == first
        V = TINY.images.load("float32").train
        settings = SETTINGS[name]
        cd = ContrastiveDivergence(
            V, 6, settings=settings, momentum_epochs=first, seed=layer_seed(3, 1)
        )
        for _ in range(epochs):
            rbm = cd.epoch()
        trained = ends(runs, protocol=name, method="cd", inputs="own", layer=1)
        assert trained["iteration"] == epochs
        assert (
            trained["mean_field"] == reconstruction_errors(rbm, V, seed=layer_seed(3, 1)).mean_field
        )


@pytest.mark.parametrize("recorded", [settings_map.SMALL, settings_map.LARGE], ids=["7x7", "28x28"])
def test_of_iterations_that_are_kept_one_is_the_end_of_the_training(recorded: Map) -> None:
    """Or none is trained: of a start the errors alone are asked for."""
    cells = recorded.cells[:5]
    one = dataclasses.replace(recorded, seeds=(0,), cells=cells, searched=cells)
    ends = set()
    for (*_, method, _), call in settings_map.plan(one)["runs"][1].items():
        kept = call.arguments["iterations"]
        if method == START:
            assert kept == (0,)
        else:
            assert call.arguments["reading"].n_gen in kept, method
            ends.add(method)
    assert ends >= {"cd", "lea-mvd", "lea-mvd:printed"}


def test_contrastive_divergence_is_looked_at_ten_times_over_its_last_fifth() -> None:
    study = settings_map.SMALL.study(*BOOK)
    late = [iteration for iteration in study.iterations or () if iteration > 50]
    assert late == [*range(246, 301, 6)], "of 300 epochs"


def test_searches_that_are_compared_have_as_many_evaluations() -> None:
    evaluations = {}
    for name in ("lea-mvd", "sep-cma-es"):
        method = Method.parse(settings_map.METHODS[name])
        reading = method.reading(Reading())
        opt = method.training(Training()).optimizer(method.trainer, X0, reading=reading, seed=0)
        for _ in range(opt.n_gen):
            opt.tell(opt.ask(), (opt.ask() ** 2).sum(axis=1))
        evaluations[name] = opt.nfev
    more = evaluations["sep-cma-es"] - evaluations["lea-mvd"]
    assert 0 <= more < 24, "to a generation"


def test_starts_are_where_searches_begin_and_on_shared_inputs_on_the_course_of_cd(
    runs: pd.DataFrame,
) -> None:
    for inputs, layer in (("own", 1), ("own", 2), ("shared", 2), ("shared", 3)):
        start = ends(runs, protocol="plain", method=START, inputs=inputs, layer=layer)
        same = {"protocol": "plain", "inputs": inputs, "layer": layer}
        first = ends(runs, **same, method="lea-mvd", iteration=0)
        # above a layer that a search has changed, its stack and that of starts make other features
        assert (start["mean_field"] == first["mean_field"]) == ((inputs, layer) != ("own", 2))
        if inputs == "shared":  # four mini-batches of 50 are an epoch of 200 images
            trained = ends(runs, **same, method="cd", iteration=1)
            assert start["mean_field"] == trained["mean_field"]


def test_cells_that_are_not_searched_have_contrastive_divergence_and_the_start_alone(
    runs: pd.DataFrame,
) -> None:
    methods = runs.groupby(["protocol", "batches"])["method"].unique().map(set)
    assert methods["plain", 4] == {START, *settings_map.METHODS}
    assert methods["small", 10] == {START}
    assert methods["plain", 0] == methods["small", 0] == {"cd"}
    shipped = settings_map.kept(runs)
    assert set(shipped.query("method == 'lea-mvd'")["iteration"]) == {0, 50}
    assert shipped.query("method == 'cd'").equals(runs.query("method == 'cd'"))


@pytest.mark.parametrize("profile", settings_map.PROFILES)
@pytest.mark.parametrize(
    "changes",
    [{"protocols": ("0.01/0.01",), "batches": (7,)}, {"protocols": ("guide",)}, {"batches": (7,)}],
    ids=str,
)
def test_every_cell_that_is_asked_for_is_searched(profile: str, changes: dict[str, Any]) -> None:
    both = settings_map.PROFILES[profile].changed(**changes)
    for name, (columns, calls) in settings_map.plan_of_both(both).items():
        labels = pd.DataFrame([*calls], columns=columns)
        cells = labels[labels["batches"] > 0]
        methods = cells.groupby(["protocol", "batches"])["method"].unique()
        assert len(methods), name
        for (protocol, batches), found in methods.items():
            assert {protocol} <= {*changes.get("protocols", [protocol])}
            assert {batches} <= {*changes.get("batches", [batches])}
            assert {START, "lea-mvd", "lea-mvd:printed"} <= {*found}, name


def test_a_map_is_changed_in_its_cells_its_images_and_its_own_fields() -> None:
    usual = settings_map.PROFILES["quick"]
    both = usual.changed(layers=(3, 2, 1), seeds=(5, 7), n_images=50, updates=None)
    assert (both.small.layers, both.large.layers) == ((3, 2, 1), usual.large.layers)
    for changed, before in ((both.small, usual.small), (both.large, usual.large)):
        assert changed.seeds == (5, 7)
        assert changed.images == dataclasses.replace(before.images, n_images=50)
        assert (changed.cells, changed.searched) == (before.cells, before.searched)
        assert (changed.updates, changed.methods) == (before.updates, before.methods)
    crossed = usual.small.changed(batches=(9, 7))
    cells = (("0.1/0.1", 9), ("0.1/0.1", 7), ("0.01/0.003", 9), ("0.01/0.003", 7))
    assert crossed.cells == crossed.searched == cells
    assert usual.small.changed(protocols=("guide",)).cells == (("guide", 5), ("guide", 600))
    for wrong in ({"protocols": ("mine",)}, {"protocols": ("guide", "guide")}, {"batches": (0,)}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            usual.changed(**wrong)


def test_a_cell_has_the_settings_of_its_protocol_and_its_maps_study() -> None:
    cell = dataclasses.replace(TINY, dtype="float64", seeds=(4, 2), methods=("random",))
    study = cell.study("small", 7)
    training = study.training
    for name, value in vars(SETTINGS["small"]).items():
        assert getattr(training, name) == (2 if name == "momentum_epochs" else value)
    assert (training.x0, training.x0_batches, training.dtype) == ("batch", 7, "float64")
    assert (study.seeds, study.layers, study.methods) == ((4, 2), (6, 5, 4), ("cd", "random"))
    assert study.images.n_images == 200
    # mini-batches of 70 are three in an epoch, of which the last one is smaller
    uneven = dataclasses.replace(TINY, protocols={"uneven": CDSettings(batch_size=70)})
    found = uneven.study("uneven", 1)
    assert (found.reading.n_gen, found.training.momentum_epochs) == (40 // 3, 20 // 3)


# ---- answers

# errors of RBM 1, 2 and 3, at the start and at the end; own and shared inputs have the same
ENDS = {
    "cd": [(900, 400), (800, 400), (700, 400)],
    "lea-mvd": [(500, 500), (500, 200), (500, 200)],
    "lea-mvd:printed": [(500, 450), (500, 300), (500, 600)],
    "sep-cma-es": [(500, 500), (500, 350), (500, 350)],
}


def made(cells: dict[tuple[str, int], dict[str, Any]], ratio: float = 0.3) -> pd.DataFrame:
    """Return a table as the map's of ten seeds, in which the cells have these ends, or those of
    `ENDS`.
    """
    rows = []
    for (protocol, batches), changed in cells.items():
        for method, layers in {**ENDS, **changed}.items():
            own = 0 if method == "cd" else batches
            iterations = [0, 1, *range(246, 301, 6)] if method == "cd" else [0, 50]
            for layer, (first, end) in enumerate(layers, start=1):
                for seed in range(10):
                    noise = np.random.default_rng([seed, layer, len(method)]).normal(1, 1e-4)
                    path = np.full(len(iterations), end * noise)
                    path[0] = first * noise
                    for inputs in ("own", "shared"):
                        label = (protocol, own, inputs, layer, method, seed)
                        rows += [(*label, *row) for row in zip(iterations, path, strict=True)]
    names = ["protocol", "batches", "inputs", "layer", "method", "seed", "iteration", "mean_field"]
    table = pd.DataFrame(rows, columns=names).drop_duplicates(names[:-1])
    return table.assign(n_images=10_000, mean_field_ratio=ratio * table["mean_field"] / 400)


WON = {"lea-mvd:printed": [(500, 500), (500, 200), (500, 200)]}


def test_answers_of_a_cell_are_those_of_its_own_runs() -> None:
    other = ("0.1/0.01", 600)
    found = settings_map.answers(settings_map.evidence(made({BOOK: {}, other: WON}), Margins()))
    here = found[BOOK]
    # as printed RBM 1 changes by 10 %, RBM 2 is below CD and CMA-ES, RBM 3 above both; CMA-ES is
    # below CD in both
    assert here["C3", "printed"] == "not reproduced"
    assert here["C3", "default"] == settings_map.STILL
    assert here["C4", "printed"] == here["C5", "printed"] == "partly"
    assert here["C4", "default"] == here["C4", "conclusion"] == "reproduced"
    assert here["C5", "default"] == here["C5", "conclusion"] == "reproduced"
    assert here["C10", "both"] == "reproduced"
    assert set(found[other]) == {"reproduced", settings_map.STILL}


BELOW_CD = {
    "printed": ("LEA-MVD as printed", "CD"),
    "default": ("LEA-MVD", "CD"),
    "own": ("CMA-ES", "CD"),
}
BELOW_BOTH = {
    "printed": [BELOW_CD["printed"], ("LEA-MVD as printed", "CMA-ES")],
    "default": [BELOW_CD["default"], ("LEA-MVD", "CMA-ES")],
}


@pytest.mark.parametrize("shared", [True, False])
def test_parts_of_claims_at_7x7_pixels_compare_what_the_claims_say(shared: bool) -> None:
    """C3 is of RBM 1 and all searches, C4 that both are below CD, C5 that LEA-MVD is below both."""
    table = made({BOOK: {}}).query("seed < 2")
    if not shared:
        table = table[table["inputs"] == "own"]
    table["mean_field_ratio"] = 10 * table["mean_field"]
    table.loc[table["inputs"] == "shared", "mean_field_ratio"] *= 1 + (table["method"] == "cd")
    ((_, rows),) = settings_map.cells(table.replace({"method": {"sep-cma-es": EQUAL}}))
    found = {}
    effects = {}
    for claim, view, part in settings_map.parts(Errors.of("7×7 pixels", rows), Margins()):
        layer = int(part.where[-1])
        found.setdefault((claim, view, layer), []).append((part.method, part.baseline))
        effects[claim, view, layer, part.method, part.baseline] = part.effect
    expected: dict[Any, Any] = {
        ("C3", "both", 1): [("CMA-ES", "–")],
        ("C3", "printed", 1): [("LEA-MVD as printed", "–")],
        ("C3", "default", 1): [("LEA-MVD", "–")],
    }
    for layer in (2, 3):
        for view, pair in BELOW_CD.items():
            expected["C4", view, layer] = [pair]
        for view, pairs in BELOW_BOTH.items():
            expected["C5", view, layer] = pairs
        if shared:
            expected["C4", "conclusion", layer] = [("LEA-MVD", "CD"), ("CMA-ES", "CD")]
            expected["C5", "conclusion", layer] = BELOW_BOTH["default"]
    expected |= {("C10", "both", layer): [("CD", "–")] for layer in (1, 2, 3)}
    assert found == expected
    assert effects["C4", "printed", 3, "LEA-MVD as printed", "CD"].effect == pytest.approx(
        1.5, rel=1e-3
    )
    if shared:  # by the ratio to the constant image, which is twice as large for CD there
        one = effects["C5", "conclusion", 2, "LEA-MVD", "CD"]
        assert one.effect == pytest.approx(0.25, rel=1e-3)
    for claim, bounds in (("C3", (-1, 1)), ("C10", (-1, 1)), ("C4", (-np.inf, 1))):
        margins = {(e.lower, e.upper) for (name, *_), e in effects.items() if name == claim}
        assert margins == {bounds}


def test_c4_counts_cma_es_too_in_both_readings() -> None:
    won = {
        "lea-mvd": [(500, 500), (500, 200), (500, 200)],
        "lea-mvd:printed": [(500, 500), (500, 200), (500, 200)],
        "sep-cma-es": [(500, 500), (500, 600), (500, 600)],
    }
    own = made({BOOK: won}).query("inputs == 'own'")
    found = settings_map.answers(settings_map.evidence(own, Margins()))
    for view in ("printed", "default"):
        assert found[BOOK]["C4", view] == "partly"
        assert found[BOOK]["C5", view] == "reproduced"


def test_parts_of_claims_at_28x28_pixels_compare_what_the_claims_say() -> None:
    """C6 is that RBM 1 changes by little, C7 and C8 of RBM 2 and 3 are numbers and that LEA-MVD is
    below CD, C9 compares both sizes.
    """
    ((_, rows),) = settings_map.cells(large({BOOK: {}}))
    ((_, below),) = settings_map.cells(made({BOOK: {}}).assign(n_visible=49))
    of_large = Errors.of("28×28 pixels", rows)
    small = Errors.of("7×7 pixels", below)
    cd = "CD"
    printed = "LEA-MVD as printed"
    alone = {
        ("C6", "both", "1", cd, "–"),
        ("C8", "both", "3", cd, "–"),
        ("C6", "printed", "1", printed, "–"),
        ("C6", "default", "1", "LEA-MVD", "–"),
    }
    numbers = {("C7", "both", "2", cd, "the printed 50,000")}
    for view, ours in (("printed", printed), ("default", "LEA-MVD")):
        for claim, layer, number in (("C7", "2", "5,000"), ("C8", "3", "900")):
            alone.add((claim, view, layer, ours, cd))
            numbers.add((claim, view, layer, ours, f"the printed {number}"))
    sizes = set()
    for layer, (view, ours) in product(
        "123", (("both", cd), ("printed", printed), ("default", "LEA-MVD"))
    ):
        for per in ("image", "unit"):
            sizes.add(("C9", view, f"RBM {layer}, 28×28 / 7×7, per {per}", ours, "–"))
    for beside, given, expected in (
        (None, True, alone | numbers),
        (small, True, alone | numbers | sizes),
        (small, False, alone | sizes),
    ):
        found = []
        bounds = {}
        parts = settings_map.parts_of_large(of_large, beside, Margins(), printed=given)
        for claim, view, part in parts:
            where = part.where.removeprefix("28×28 pixels, RBM ")
            found.append((claim, view, where, part.method, part.baseline))
            kind = "number" if "printed" in part.baseline else part.where[-5:]
            bounds[claim, kind] = (part.effect.lower, part.effect.upper)
        assert len(found) == len(expected)
        assert {*found} == expected
        within = {(claim, "number"): (0.5, 2) for claim in ("C7", "C8")} if given else {}
        assert within.items() <= bounds.items()
        if beside:
            assert (bounds["C9", "image"], bounds["C9", " unit"]) == ((1, np.inf), (0.5, 2))
        assert bounds["C6", "RBM 1"] == (-10, 10)


def test_a_part_at_its_very_bound_is_met() -> None:
    effect = paired(pd.Series([2.0]), 1.0, lower=2.0, upper=3.0)._replace(effect=2.0)
    parts = {}
    for seed, others in {4: (3.0, 3.5, 1.9), 9: (2.5, 2.0, 5.0)}.items():
        parts[seed] = []
        for number, value in enumerate((2.0, *others)):
            part = Part(f"RBM {number}", "a", "b", "{} times", effect._replace(effect=value))
            parts[seed].append(("C7", "both", part))
        parts[seed].append(("C8", "both", part))
    found = settings_map.by_seed(parts, "C7")
    assert found["part"].tolist() == [f"RBM {number}: ... times" for number in range(4)]
    assert found[["seed 4", "seed 9"]].to_numpy().tolist() == [
        [2, 2],
        [3, 2.5],
        [3.5, 2],
        [1.9, 5],
    ]
    assert found["met"].tolist() == ["yes", "yes", "undecided", "no"]
    assert {*found["above"], *found["below"]} == {2, 3}
    assert (found["above"] < found["below"]).all()
    assert [*found] == ["view", "part", "seed 4", "seed 9", "above", "below", "met"]


def test_a_claim_that_was_not_run_in_a_cell_has_no_answer_there() -> None:
    rows = []
    for cell, claim, view, met in (
        (BOOK, "C4", "printed", "yes"),
        (BOOK, "C4", "own", "no"),
        (BOOK, "C4", "default", "yes"),
        (BOOK, "C4", "both", "yes"),
        (BOOK, "C7", "printed", "yes"),
        (BOOK, "C7", "both", "no"),
        (FAR, "C7", "both", "yes"),
        (FAR, "C3", "conclusion", "yes"),
        (FAR, "C10", "both", "undecided"),
        (FAR, "C15", "default", "no"),
    ):
        rows.append((*cell, claim, view, met))
    columns = [*settings_map.CELL, "claim", "view", "met"]
    found = settings_map.answers(pd.DataFrame(rows, columns=columns))
    assert found[BOOK][found[BOOK] != ""].to_dict() == {
        ("C3", "printed"): settings_map.STILL,
        ("C3", "default"): settings_map.STILL,
        ("C4", "printed"): "partly",
        ("C4", "default"): "partly",
        ("C7", "printed"): "partly",
    }
    assert found[FAR][found[FAR] != ""].to_dict() == {
        ("C3", "printed"): settings_map.STILL,
        ("C3", "default"): settings_map.STILL,
        ("C10", "both"): "undecided",
        ("C15", "default"): "not reproduced",
    }
    assert [*found.index] == [row for row in settings_map.ANSWERED if row in {*found.index}]


def test_without_shared_inputs_there_is_no_conclusion() -> None:
    own = made({BOOK: {}}).query("inputs == 'own'")
    found = settings_map.answers(settings_map.evidence(own, Margins()))
    assert not [view for _, view in found.index if view == "conclusion"]
    assert found[BOOK]["C5", "default"] == "reproduced"


def test_contrastive_divergence_that_still_falls_in_its_last_fifth_has_not_converged() -> None:
    table = made({BOOK: {}})
    late = (table["method"] == "cd") & (table["layer"] == 2) & (table["iteration"] > 0)
    # 4 % in the last 60 epochs
    table.loc[late, "mean_field"] *= np.exp(-0.04 * table.loc[late, "iteration"] / 60)
    rows = settings_map.evidence(table, Margins()).query("claim == 'C10'").set_index("where")
    assert rows["met"].tolist() == ["yes", "no", "yes"]
    assert rows.loc["7×7 pixels, RBM 2", "effect"] == pytest.approx(4, rel=1e-6)


def test_the_smallest_change_of_one_setting_that_turns_an_answer_is_named() -> None:
    rows = pd.MultiIndex.from_tuples(
        [("C4", "printed"), ("C4", "default")], names=["claim", "view"]
    )
    found = pd.DataFrame("partly", rows, pd.MultiIndex.from_tuples(CELLS, names=settings_map.CELL))
    tenfold, farther = ("0.1/0.01", 600), ("0.1/0.1", 5)
    found.loc[("C4", "printed"), [tenfold, farther]] = "reproduced"
    turned = settings_map.turned(found)
    assert turned.loc[("C4", "printed"), "turned by"] == "rate 0.01"
    assert turned.loc[("C4", "printed"), ["reproduced", "partly"]].tolist() == [2, 28]
    assert turned.loc[("C4", "default"), "turned by"] == "none"
    assert turned.loc[("C4", "default"), "partly"] == len(CELLS)
    assert turned["here"].tolist() == ["partly", "partly"]
    assert [*turned] == [*settings_map.ANSWERS, "here", "turned by"]
    assert "here" not in settings_map.turned(found.drop(columns=[BOOK]))
    # where it was not run there is no other answer
    found.loc[("C4", "printed"), tenfold] = ""
    assert settings_map.turned(found).loc[("C4", "printed"), "turned by"] == (
        "a start of 5 mini-batches"
    )
    found.loc[("C4", "default"), ("0.01/0.1", 60)] = "undecided"  # two settings differ
    assert settings_map.turned(found).loc[("C4", "default"), "turned by"] == "none"
    for name, words in (
        ("0.01/0.1", "first weights N(0, 0.01)"),
        ("0.1/0.01", "rate 0.01"),
        ("0.1/0.003", "rate 0.003"),
    ):
        one = found.copy()
        one.loc[("C4", "default"), (name, 600)] = "undecided"
        assert settings_map.turned(one).loc[("C4", "default"), "turned by"] == words


def test_cells_beside_the_books_differ_in_one_setting_by_a_factor() -> None:
    changes = {cell: (factor, words) for factor, words, cell in settings_map.neighbors()}
    del changes[BOOK]
    factors = {cell: factor for cell, (factor, _) in changes.items()}
    assert factors == pytest.approx(
        {
            ("0.01/0.1", 600): 10,
            ("0.1/0.01", 600): 10,
            ("0.1/0.003", 600): 100 / 3,
            ("0.1/0.1", 60): 10,
            ("0.1/0.1", 5): 120,
            ("0.1/0.1", 1): 600,
        }
    )
    assert changes["0.1/0.1", 1][1] == "a start of 1 mini-batch"
    assert changes["0.1/0.1", 60][1] == "a start of 60 mini-batches"


def test_a_protocol_that_ends_near_the_constant_image_is_marked() -> None:
    told, near = made({BOOK: {}}), made({("0.1/0.003", 1): {}}, ratio=0.95)
    # in one layer, on its own inputs
    near.loc[near["layer"] != 2, "mean_field_ratio"] /= 2
    near.loc[near["inputs"] == "shared", "mean_field_ratio"] *= 2
    marked = settings_map.untold(pd.concat([told, near]))
    assert list(marked) == ["0.1/0.003"]
    assert marked["0.1/0.003"] == pytest.approx(0.95, rel=1e-3)
    edges = [made({("guide", 1): {}}, ratio=0.91), made({("0.1/0.1", 1): {}}, ratio=0.89)]
    named = settings_map.untold(pd.concat([*edges, made({("0.01/0.1", 5): {}}, ratio=2)]))
    assert [*named] == ["guide", "0.01/0.1"], "in their order"


def test_errors_over_the_constant_images_are_geometric_means_of_the_last_by_layer() -> None:
    rows = []
    for protocol, layer, ends in (
        ("guide", 1, [0.5, 0.5]),
        ("guide", 2, [0.1, 0.4]),
        ("0.1/0.1", 1, [0.9, 0.1]),
    ):
        for seed, end in enumerate(ends):
            for inputs in ("own", "shared"):
                label = (protocol, 0, inputs, layer, "cd", seed)
                factor = 1 if inputs == "own" else 7
                rows += [(*label, 0, 5.0), (*label, 3, factor * end), (*label, 1, 2.0)]
            rows.append((protocol, 5, "own", layer, START, seed, 0, 9.0))
    names = ["protocol", "batches", "inputs", "layer", "method", "seed", "iteration"]
    found = settings_map.trained(pd.DataFrame(rows, columns=[*names, "mean_field_ratio"]))
    name = "error / constant's"
    assert found[["protocol", "layer"]].to_numpy().tolist() == [
        ["guide", 1],
        ["guide", 2],
        ["0.1/0.1", 1],
    ]
    assert found[name].tolist() == pytest.approx([0.5, 0.2, 0.3])
    half = stats.t.ppf(0.975, 1) * np.log(2)
    assert found.loc[1, ["low", "high"]].tolist() == pytest.approx(
        (0.2 * np.exp([-half, half])).tolist()
    )
    assert [*found] == ["protocol", "layer", name, "low", "high"]


def test_errors_over_those_of_contrastive_divergence_are_paired_by_seed() -> None:
    ratios = settings_map.over_cd(made({BOOK: {}}))
    means = ratios.groupby(["layer", "method"])["ratio"].mean()
    assert means[2, "lea-mvd"] == pytest.approx(0.5, rel=1e-3)
    assert means[3, "lea-mvd:printed"] == pytest.approx(1.5, rel=1e-3)
    assert len(ratios) == 2 * 3 * 10


def test_errors_over_cds_are_of_the_same_protocol_layer_and_seed() -> None:
    rows = []
    for inputs, layer, seed in product(("shared", "own"), (3, 2, 1), (1, 0)):
        for number, protocol in enumerate(("guide", "0.1/0.1"), start=1):
            base = 100.0 * number + 10 * layer + seed + 1_000 * (inputs == "shared")
            for batches, method, factor in (
                (0, "cd", 1),
                (600, "lea-mvd", 2 + seed),
                (5, START, 0.25 * layer),
            ):
                label = (protocol, batches, inputs, layer, method, seed)
                rows += [(*label, 7, factor * base), (*label, 0, 9.0)]
    names = ["protocol", "batches", "inputs", "layer", "method", "seed", "iteration", "mean_field"]
    found = settings_map.over_cd(pd.DataFrame(rows, columns=names))
    assert [*found] == ["protocol", "batches", "layer", "method", "seed", "ratio"]
    ratios = found.set_index([*found][:-1])["ratio"].to_dict()
    expected = {}
    for protocol, layer, seed in product(("guide", "0.1/0.1"), (2, 3), (0, 1)):
        expected[protocol, 600, layer, "lea-mvd", seed] = 2 + seed
        expected[protocol, 5, layer, START, seed] = 0.25 * layer
    assert ratios == pytest.approx(expected)
    means = settings_map.by_cell(found)
    assert [*means] == [*names[:2], "layer", "method", "error / CD's", "low", "high"]
    assert means["layer"].is_monotonic_increasing
    one = means.set_index(["protocol", "batches", "layer", "method"]).loc[
        ("guide", 600, 3, "lea-mvd")
    ]
    half = stats.t.ppf(0.975, 1) * np.log(3 / 2) / 2
    middle = np.sqrt(6)
    ends = middle * np.exp([0, -half, half])
    assert one.tolist() == pytest.approx(ends.tolist())


def test_rows_of_a_cell_are_its_own_and_cds_of_its_protocol() -> None:
    table = made({BOOK: {}, ("0.1/0.1", 5): {}, FAR: {}})
    rows = settings_map.at(table, BOOK)
    assert set(zip(rows["protocol"], rows["batches"], strict=True)) == {("0.1/0.1", 0), BOOK}
    cells = dict(settings_map.cells(table))
    assert [*cells] == [BOOK, ("0.1/0.1", 5), FAR]
    for (protocol, batches), own in cells.items():
        assert {*own["protocol"]} == {protocol}
        assert {*own.loc[own["method"] != "cd", "batches"]} == {batches}
        late = own.loc[own["method"] == "cd", "iteration"].unique()
        assert late.tolist() == pytest.approx([at / 6 for at in (0, 1, *range(246, 301, 6))])


def test_what_is_recorded_is_in_the_order_of_protocols() -> None:
    order = [*settings_map.PROTOCOLS, settings_map.ANY]
    small, large = settings_map.recorded()
    for table in (small, large, settings_map.networks()):
        places = table["protocol"].map(order.index)
        assert places.is_monotonic_increasing
        found = {*settings_map.cells_of(table.query("batches > 0"))}
        assert found <= {*CELLS}
        if table is small or table is large:
            assert found == {*CELLS}
    assert {*small["n_visible"].groupby(small["layer"]).first()} == {49, 30}
    assert {*small["inputs"]} == {"own", "shared"}
    searched = {*settings_map.cells_of(large.query("method == 'lea-mvd'"))}
    assert searched == {*settings_map.SEARCHED_CELLS}


# ---- a cell of one's own


def test_a_part_is_met_where_it_is_in_all_seeds_and_mixed_where_in_some() -> None:
    table = made({BOOK: {START: [(500, 500), (500, 500), (800, 800)]}})
    own_start = (table["method"] == START) & (table["inputs"] == "own") & (table["layer"] == 3)
    table.loc[own_start, "mean_field"] *= 3  # which is no start of contrastive divergence's
    table.loc[
        (table["method"] == "lea-mvd") & (table["layer"] == 2) & (table["seed"] == 1), "mean_field"
    ] *= 10
    ((_, rows),) = settings_map.cells(table)
    found = {}
    for seed in (0, 1):
        large = Errors.of("28×28 pixels", rows[rows["seed"] == seed])
        found[seed] = [*settings_map.parts_of_large(large, None, Margins())]
    parts = settings_map.by_seed(found, "C7")
    told = dict(
        zip(parts["view"] + ", " + parts["part"].str.split(": ").str[1], parts["met"], strict=True)
    )
    assert told["default, LEA-MVD ends at ... times the error of CD"] == "undecided"
    assert told["printed, LEA-MVD as printed ends at ... times the error of CD"] == "yes"
    assert told["both, CD ends at ... times the printed 50,000"] == "no"
    assert parts.loc[parts["met"] == "undecided", "seed 1"].item() == pytest.approx(5, rel=1e-2)
    assert "printed 50,000" not in " ".join(
        settings_map.by_seed(
            {0: [*settings_map.parts_of_large(large, None, Margins(), printed=False)]}, "C7"
        )["part"]
    )
    # contrastive divergence ends RBM 3 at 400, and the cell's start on its features is at 800
    (changed,) = settings_map.by_seed(found, "C8").query("view == 'both'")["seed 0"]
    assert changed == pytest.approx(50, rel=1e-3)


def test_a_cell_of_ones_own_has_the_settings_and_the_start_that_are_given() -> None:
    given = {"learning_rate": 0.003, "weight_scale": 0.01, "x0": "batch", "x0_batches": 5}
    (own,) = settings_map.own_maps("C7", given, dataset="mnist", n_images=2_000, n_seeds=2).values()
    study = own.study(*own.cells[0])
    assert study.layers == (500, 500, 2000)
    assert (study.training.learning_rate, study.training.weight_scale) == (0.003, 0.01)
    assert (study.training.x0, study.training.x0_batches, study.seeds) == ("batch", 5, (0, 1))
    assert study.reading.n_gen == 1_500, "30,000 updates of 100 of 2,000 images"
    assert list(settings_map.own_maps("C9", {}, dataset="digits")) == [7, 28]
    (epoch,) = settings_map.own_maps(
        "C4", {"x0_epochs": 2, "batch_size": 10}, n_images=1_000
    ).values()
    assert epoch.cells == ((settings_map.OWN, 200),)
    (uneven,) = settings_map.own_maps("C4", {"x0_epochs": 2}, n_images=1_050).values()
    assert uneven.cells == ((settings_map.OWN, 22),), "the last mini-batch of an epoch is smaller"
    assert uneven.study(*uneven.cells[0]).reading.n_gen == 30_000 // 11
    for wrong, words in (
        ({"n_gen": 3}, "a setting of a claim"),
        ({"x0": "none"}, "x0 must be one of"),
        ({"x0_batches": 5}, "clashes with x0='epochs'"),
    ):
        with pytest.raises(ValueError, match=words):
            settings_map.own_maps("C7", wrong)


def test_the_time_that_is_told_is_that_of_all_searches_seeds_and_inputs() -> None:
    (own,) = settings_map.own_maps("C4", {}, n_images=1_000, n_seeds=1).values()

    def searches(**changes: Any) -> float:
        changed = dataclasses.replace(own, **changes)
        return settings_map.seconds(changed) - settings_map.seconds(
            dataclasses.replace(changed, methods=())
        )

    once = searches(inputs=("own",))
    first = searches(inputs=("own",), layers=own.layers[:1])
    # a first layer sees the same images on both kinds of inputs
    assert 0 < searches() == pytest.approx(2 * once - first)
    assert searches(methods=own.methods[:1]) == pytest.approx(searches() / len(own.methods))
    both = dataclasses.replace(own, seeds=(0, 1))
    assert settings_map.seconds(both) == pytest.approx(2 * settings_map.seconds(own))
    (longer,) = settings_map.own_maps("C4", {"cd_steps": 2}, n_images=1_000, n_seeds=1).values()
    cd, twice = (
        settings_map.seconds(dataclasses.replace(one, methods=())) for one in (own, longer)
    )
    assert twice == pytest.approx(7 / 5 * cd)


def test_a_cell_of_ones_own_is_of_the_sizes_images_and_seeds_of_its_claim() -> None:
    for claim, sides in (
        *((claim, [7]) for claim in ("C3", "C4", "C5", "C10")),
        *((claim, [28]) for claim in ("C6", "C7", "C8")),
        ("C9", [7, 28]),
    ):
        maps = settings_map.own_maps(claim, {"cd_steps": 3})
        assert [*maps] == sides
        for side, one in maps.items():
            assert one.images == Images(dataset="mnist", side=side, n_images=10_000)
            assert one.seeds == (0, 1, 2)
            assert one.cells == one.searched == ((settings_map.OWN, 100),)
            assert one.protocols == {settings_map.OWN: CDSettings(cd_steps=3)}
            usual = settings_map.LARGE if side == 28 else Map()
            assert one == dataclasses.replace(
                usual,
                images=one.images,
                seeds=one.seeds,
                protocols=one.protocols,
                cells=one.cells,
                searched=one.searched,
            )
    (digits,) = settings_map.own_maps("C4", {}, dataset="digits").values()
    assert digits.images.n_images == 1_437
    assert digits.cells == ((settings_map.OWN, 15),)
    (one,) = settings_map.own_maps("C4", {}, dataset="digits", n_images=1, n_seeds=1).values()
    assert (one.images.n_images, one.seeds) == (1, (0,))
    for wrong, words in (
        ({"n_images": 1_438}, "images must be"),
        ({"n_images": -1}, "images must be"),
        ({"given": {"x0_epochs": 0}}, "x0_batches must be"),
        ({"given": {"momentum_epochs": 3}}, "a setting of a claim"),
        ({"claim": "C1"}, "claim must be one of"),
    ):
        call = {"claim": "C4", "given": {}, "dataset": "digits"} | wrong
        with pytest.raises(ValueError, match=words):
            settings_map.own_maps(**call)


def test_the_time_of_a_search_is_that_of_as_many_evaluations_as_it_makes() -> None:
    (own,) = settings_map.own_maps("C4", {}, n_images=2_000, n_seeds=1).values()
    one = dataclasses.replace(own, layers=(30,), methods=own.methods[:1])
    told = settings_map.seconds(one) - settings_map.seconds(dataclasses.replace(one, methods=()))
    row = {"n_visible": 49, "n_hidden": 30, "n_images": 2_000}
    measured = [read_recorded("linear_cost", name) for name in ("objectives", "training")]
    rows = pd.DataFrame([row | {"evaluations": 1_004, "products": 2_008}])
    assert told == pytest.approx(timed(rows, *measured)["seconds"].item(), rel=0.25)
    epochs = pd.DataFrame([row | {"evaluations": 0, "products": 5 * 30_000 // 20}])
    alone = settings_map.seconds(dataclasses.replace(one, methods=()))
    assert alone == pytest.approx(timed(epochs, *measured)["seconds"].item())


def test_the_nearest_cell_at_28x28_pixels_is_one_that_was_searched() -> None:
    runs, large_runs = settings_map.recorded()[::1]
    given = {"weight_scale": 0.01, "learning_rate": 0.003, "x0": "batch", "x0_batches": 1}
    (own,) = settings_map.own_maps("C8", given).values()
    told = settings_map.nearest("C8", own)
    cell = ("0.01/0.003", 5)
    words = "N(0, 0.01), rate 0.003, a start of 5 mini-batches (10,000 images, three seeds)"
    assert told.startswith(f"the nearest cell of the map, {words}: ")
    found = settings_map.answers(
        settings_map.evidence_of_large(
            settings_map.at(large_runs, cell), settings_map.at(runs, cell), Margins()
        )
    )
    expected = [f"{view}: {word}" for view, word in found[cell]["C8"].items()]
    assert told.split("): ")[1].split("; ") == expected
    assert len(expected) == 2


def test_an_answer_about_both_sizes_has_the_parts_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paper's numbers are bounds for its images alone."""
    cell = (settings_map.OWN, 5)
    start = {START: [(500, 500)] * 3}
    asked = []

    def computed(plan: Any, folder: Any, **options: Any) -> dict[str, pd.DataFrame]:
        asked.append((folder, options))
        size = "7x7" if "7x7" in options["label"] else "28x28"
        table = made({cell: start}).query("seed < 2")
        if size == "28x28":
            table = table[table["method"] != "sep-cma-es"]
            table["mean_field"] *= 8
        return {"runs": table.assign(n_visible=49 if size == "7x7" else 784)}

    monkeypatch.setattr(results, "tables", computed)
    given = {"x0": "batch", "x0_batches": 5}
    alone = ["C7, 28x28 pixels"]
    for claim, dataset, labels in (
        ("C9", "digits", ["C9, 7x7 pixels", "C9, 28x28 pixels"]),
        ("C7", "digits", alone),
        ("C7", "mnist", alone),
    ):
        asked.clear()
        maps = settings_map.own_maps(claim, given, dataset=dataset, n_images=100, n_seeds=2)
        parts, ratios = settings_map.own_answer(claim, maps, tmp_path, n_jobs=3)
        assert asked == [(tmp_path, {"n_jobs": 3, "label": label}) for label in labels]
        assert len(ratios) == 2 * len(labels)
        if claim == "C9":
            per_image = parts[parts["part"].str.contains("per image")]
            ratio = per_image[["seed 0", "seed 1"]].to_numpy()
            np.testing.assert_allclose(ratio, 8, rtol=1e-6)
            assert {*per_image["met"]} == {"yes"}
            per_unit = parts.loc[parts["part"].str.contains("per unit"), "seed 1"]
            np.testing.assert_allclose(per_unit, 8 * 49 / 784, rtol=1e-6)
            assert len(parts) == 18
        else:
            assert parts["part"].str.contains("the printed").any() == (dataset == "mnist")


@pytest.mark.parametrize(
    ("given", "cell", "words"),
    [
        ({"x0_epochs": 5}, BOOK, "N(0, 0.1), rate 0.1, a start of 600 mini-batches"),
        # an epoch of 10,000 images has 100 mini-batches
        ({"learning_rate": 0.2}, ("0.1/0.1", 60), "N(0, 0.1), rate 0.1, a start of 60"),
        (
            {"weight_scale": 0.02, "learning_rate": 0.004, "x0": "batch", "x0_batches": 10},
            ("0.01/0.003", 5),
            "N(0, 0.01), rate 0.003, a start of 5",
        ),
        ({"x0": "batch"}, ("0.1/0.1", 1), "N(0, 0.1), rate 0.1, a start of 1 mini-batch"),
    ],
)
def test_the_nearest_cell_of_the_map_is_named_with_its_answers(
    given: dict[str, Any], cell: tuple[str, int], words: str
) -> None:
    runs = settings_map.recorded().runs
    (own,) = settings_map.own_maps("C5", given).values()
    told = settings_map.nearest("C5", own)
    assert told.startswith(f"the nearest cell of the map, {words}")
    answers = settings_map.answers(settings_map.evidence(settings_map.at(runs, cell), Margins()))
    for view, answer in answers[cell]["C5"].items():
        assert f"{view}: {answer}" in told


@pytest.mark.parametrize("claim", ["C5", "C8"])
def test_the_nearest_cell_is_named_with_the_seeds_that_it_has(claim: str) -> None:
    own, *_ = settings_map.own_maps(claim, {"learning_rate": 0.1}).values()
    small, large = settings_map.recorded()[:2]
    runs = settings_map.at(large if claim == "C8" else small, BOOK)
    searched = runs[runs["method"] == "lea-mvd"]
    count = {3: "three", 10: "ten"}[searched["seed"].nunique()]
    assert f", {count} seeds): " in settings_map.nearest(claim, own)


def test_settings_of_the_map_are_the_cell_of_the_map() -> None:
    given = {"learning_rate": 0.003, "weight_scale": 0.01, "x0": "batch", "x0_batches": 5}
    (own,) = settings_map.own_maps("C4", given, n_seeds=10).values()
    same = settings_map.plan(own)["runs"][1]
    cells = (("0.01/0.003", 5),)
    there = {}
    for recorded in (settings_map.SMALL, Map(inputs=("shared",))):
        assert cells[0] in recorded.cells
        there |= settings_map.plan(dataclasses.replace(recorded, cells=cells))["runs"][1]
    for (_, batches, *label), call in same.items():
        assert call.key == there["0.01/0.003", batches, *label].key


def test_an_answer_of_ones_own_has_a_column_for_each_seed_and_geometric_means_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = {START: [(500, 500), (600, 600), (700, 700)]}
    rows = made({(settings_map.OWN, 5): start}).query("seed < 3")
    apart = rows["mean_field_ratio"] * 2.0 ** rows["seed"]  # a geometric mean of twice seed 0's
    table = rows.assign(mean_field_ratio=apart.where(rows["inputs"] == "own", 99.0))
    monkeypatch.setattr(results, "tables", lambda *_, **__: {"runs": table})
    given = {"x0": "batch", "x0_batches": 5}
    maps = settings_map.own_maps("C4", given, dataset="digits", n_images=100)
    parts, ratios = settings_map.own_answer("C4", maps, tmp_path)
    assert [name for name in parts if name.startswith("seed")] == ["seed 0", "seed 1", "seed 2"]
    told = ratios.set_index("of")
    ends = {"CD": [400, 400, 400], "start": [500, 600, 700]}
    for name, errors in ends.items():
        expected = 2 * 0.3 * np.array(errors) / 400
        found = told.loc[f"7×7 pixels, {name}", ["RBM 1", "RBM 2", "RBM 3"]]
        assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-3), name


def test_the_command_answers_a_claim_at_ones_own_settings(tmp_path: Path) -> None:
    command = [
        "claim",
        "C4",
        "--dataset",
        "digits",
        "--images",
        "100",
        "--seeds",
        "1",
        "--jobs",
        "1",
    ]
    command += ["-p", "x0=batch", "-p", "x0_batches=5", "--output", str(tmp_path)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(settings_map.Map, "study", short(settings_map.Map.study))
        patch.setattr(settings_map, "seconds", lambda one: 90.0)
        run = CliRunner().invoke(main, command, catch_exceptions=False)
    assert run.exit_code == 0
    for words in (
        "C4 at 7x7 pixels, 100 images, 1 seed: about 1.5 minutes on one processor",
        "LEA-MVD as printed ends at",
        "over that of a constant image",
        "significantly smaller reconstruction errors",
        "7×7 pixels, start",
        "not the paper's images",
        "seed 0",
    ):
        assert words in run.output
    refused = CliRunner().invoke(main, ["claim", "C7", "-p", "profile=paper"])
    assert refused.exit_code == 1
    assert "a setting of a claim must be one of" in refused.output
    refused = CliRunner().invoke(main, ["claim", "C7", "-p", "learning_rate=-1"])
    assert refused.exit_code == 1
    assert "learning_rate must be a finite number >= 0" in refused.output


def short(study: Any) -> Any:
    """Return the studies of a map with fewer updates and small layers."""

    def shortened(self: Map, *cell: Any) -> Any:
        return study(
            dataclasses.replace(self, updates=20, first_updates=2, layers=(4, 3, 2)), *cell
        )

    return shortened


# ---- at 28x28 pixels, and of networks

FAR = ("0.1/0.01", 600)


def large(cells: dict[tuple[str, int], dict[str, Any]]) -> pd.DataFrame:
    """Return a table as the map's at 28x28 pixels of three seeds: `made`, per 10,000 images, with
    starts.
    """
    table = made({cell: {START: [(500, 500)] * 3} | changed for cell, changed in cells.items()})
    return table[(table["seed"] < 3) & (table["method"] != "sep-cma-es")].assign(n_visible=784)


def test_answers_at_the_larger_size_are_by_whether_all_seeds_agree() -> None:
    small = made({BOOK: {}, FAR: {}}).assign(n_visible=49)
    small["mean_field"] *= 2
    found = settings_map.evidence_of_large(
        large({BOOK: {"cd": [(500, 480), (800, 50_000), (700, 500)]}, FAR: {}}), small, Margins()
    )
    answers = settings_map.answers(found)
    # contrastive divergence changes RBM 1 by 4 % and the default by none, as printed by 10 %, at
    # the very margin
    assert answers[BOOK]["C6", "default"] == "reproduced"
    assert answers[BOOK]["C6", "printed"] == "undecided"
    parts = found[(found["protocol"] == FAR[0]) & (found["claim"] == "C6")].set_index(["view"])[
        "met"
    ]
    assert parts["both"] == "no"
    assert parts["default"] == "yes"
    # 50,000 by contrastive divergence, LEA-MVD below it, and far below 5,000
    assert answers[BOOK]["C7", "default"] == "partly"
    assert answers[FAR]["C7", "printed"] == "partly"
    # the errors per image are half of those at 7x7 pixels, but for contrastive divergence in RBM 2
    images = found[(found["claim"] == "C9") & found["part"].str.contains("per image")]
    assert set(images.loc[images["protocol"] == FAR[0], "met"]) == {"no"}
    assert images.loc[images["protocol"] == BOOK[0], "met"].tolist().count("yes") == 1
    unit = found[
        (found["claim"] == "C9")
        & found["part"].str.contains("per unit")
        & (found["protocol"] == FAR[0])
    ]
    assert unit["seed 0"].to_numpy() == pytest.approx(0.5 * 49 / 784, rel=1e-2)


def test_cells_in_which_nothing_searched_have_parts_of_contrastive_divergence_and_no_answer() -> (
    None
):
    table = large({BOOK: {}, FAR: {}})
    table = table[(table["protocol"] == BOOK[0]) | table["method"].isin(["cd", START])]
    found = settings_map.evidence_of_large(table, table.iloc[:0], Margins())
    assert set(found.loc[found["protocol"] == FAR[0], "view"]) == {"both"}
    assert {*found["claim"]} == {"C6", "C7", "C8"}, "of one size alone"
    assert list(settings_map.answers(found)) == [BOOK]


def test_the_rule_for_searches_at_28x28_pixels_names_seven_cells_beside_the_books() -> None:
    ratios = settings_map.over_cd(settings_map.recorded().large).query("method == @START")
    ratios = ratios.assign(below=ratios["ratio"] < 1, log=np.log(ratios["ratio"]))
    by_cell = ratios.groupby(settings_map.CELL)
    in_all_seeds = ratios.groupby([*settings_map.CELL, "layer"])["below"].all()
    below = in_all_seeds.groupby(settings_map.CELL).any()
    ranked = by_cell["log"].sum()[below].sort_values()
    small = [("0.01/0.003", 60), ("0.01/0.003", 5), ("0.01/0.01", 5), ("0.01/0.01", 1)]
    assert [*ranked.index[:4]] == small
    assert {*ranked.index[4:]} == {("0.01/0.01", 60), ("0.01/0.003", 1), ("0.01/0.01", 600)}
    assert not below[BOOK]


def test_the_nearest_cell_misses_both_printed_numbers_by_the_smallest_factor() -> None:
    table = large(
        {
            BOOK: {START: [(1, 1), (5_000, 5_000), (900, 900)]},
            FAR: {START: [(1, 1), (10_000, 10_000), (450, 450)]},
        }
    )
    near = settings_map.nearness(table.iloc[::-1])
    assert list(near.index) == [BOOK, FAR]
    assert near["factor"].to_numpy() == pytest.approx([1, 2], rel=1e-3)
    fewer = table.assign(n_images=5_000, mean_field=table["mean_field"] / 2)
    assert settings_map.nearness(fewer)["factor"].to_numpy() == pytest.approx([1, 2], rel=1e-3)
    assert near.loc[FAR, "RBM 3 / constant's"] == pytest.approx(0.3 * 450 / 400, rel=1e-3)
    # of seeds it is a geometric mean, here of 1, 2 and 4 times as much; and of both misses the
    # root mean square of logarithms: of 8 and 1
    scaled = 2.0 ** table["seed"]
    uneven = table.assign(mean_field=table["mean_field"] * scaled)
    uneven.loc[uneven["inputs"] == "shared", "mean_field"] = 1.0
    uneven.loc[uneven["layer"] == 3, "mean_field"] /= 2
    uneven.loc[uneven["layer"] == 2, "mean_field"] *= 4
    rows = settings_map.nearness(uneven[uneven["protocol"] == BOOK[0]])
    assert rows.loc[BOOK, [2, 3]].tolist() == pytest.approx([40_000, 900], rel=1e-3)
    assert rows.loc[BOOK, "factor"] == pytest.approx(8 ** np.sqrt(0.5), rel=1e-3)


def test_networks_are_judged_beside_contrastive_divergence_of_the_same_protocol() -> None:
    rows = []
    for protocol, batches, method, error in (
        ("0.1/0.1", 0, "cd", 0.05),
        ("0.1/0.1", 600, "lea-mvd", 0.04),
        ("0.1/0.1", 600, "lea-mvd:printed", 0.06),
        ("guide", 0, "cd", 0.02),
        ("guide", 1, "lea-mvd", 0.04),
        ("guide", 1, "lea-mvd:printed", 0.0195),
        ("any", 0, "random-1", 0.01),
    ):
        noise = np.random.default_rng(len(method)).normal(1, 0.01, 10)
        rows += [
            (protocol, batches, method, "trained", seed, error * noise[seed]) for seed in range(10)
        ]
    table = pd.DataFrame(
        rows, columns=["protocol", "batches", "method", "weights", "seed", "test_error"]
    )
    found = settings_map.evidence_of_networks(table, Margins()).set_index(
        ["protocol", "batches", "view"]
    )
    assert found["met"].to_dict() == {
        ("0.1/0.1", 600, "printed"): "no",
        ("0.1/0.1", 600, "default"): "yes",
        ("guide", 1, "printed"): "yes",
        ("guide", 1, "default"): "no",
    }
    assert found.loc[("0.1/0.1", 600, "default"), "effect"] == pytest.approx(0.8, rel=0.02)


def test_the_start_makes_the_worst_networks_where_its_mean_is_the_largest_of_all_sides() -> None:
    columns = ["protocol", "batches", "method", "weights", "seed", "test_error"]
    rows = []
    for protocol, starts in (
        ("0.1/0.1", (0.5, 0.5, 0.8)),  # the mean is the largest, the median is not
        ("guide", (0.58, 0.6, 0.1)),  # and the other way round
        ("marked", (0.9, 0.9, 0.9)),
    ):
        for seed, error in enumerate(starts):
            rows.append((protocol, 1, START, "trained", seed, error))
            rows.append((protocol, 1, "lea-mvd", "trained", seed, 0.4))
            rows.append((protocol, 1, "lea-mvd", "random", seed, 0.3))
            rows.append((protocol, 0, "cd", "trained", seed, 0.55))
    found = settings_map.worst_by_start(pd.DataFrame(rows, columns=columns), ["marked"])
    assert found.to_dict() == {("0.1/0.1", 1): True, ("guide", 1): False}
