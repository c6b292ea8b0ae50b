"""The search for what the paper may have run, on tables made by hand."""

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest

from leamvd.analysis import forensics
from leamvd.networks.dbn import Training
from leamvd.studies import records
from leamvd.studies.catalog import STUDIES
from leamvd.studies.study import Study

PAPER = STUDIES["error-measures", "paper"]
PRINTED_LETTER = "shift=printed+projections=repeated+elites=reevaluate+x0_in_population=false+perturbation=column"
SMALL = Study(
    methods=("cd", "cd:weight_scale=0.01", "cd:learning_rate=0+n_gen=1", "lea-mvd", "lea-mvd:x0=none"),
    inputs=("own", "shared"),
    seeds=(0, 1),
)


def table(errors, n_images=100):
    """Return records of two iterations with these final mean-field and sampled errors per image; seeds differ."""
    rows = [
        (method, inputs, layer, seed, iteration, both[0] * share * n_images, both[1] * share * n_images, n_images)
        for (method, inputs, layer), both in errors.items()
        for seed, share in ((0, 0.5), (1, 2.0))  # of geometric mean 1
        for iteration in (0, 1)
    ]
    columns = ["method", "inputs", "layer", "seed", "iteration", "mean_field", "sampled", "n_images"]
    made = pd.DataFrame(rows, columns=columns)
    made.loc[made["iteration"] == 0, ["mean_field", "sampled"]] *= 7.0
    return made


ERRORS = {
    (method, inputs, layer): (1.0 + i, 5.0)
    for i, (method, inputs, layer) in enumerate(itertools.product(SMALL.methods, SMALL.inputs, (1, 2, 3)))
} | {
    ("cd", "own", 2): (5.0, 10.0),
    ("lea-mvd", "own", 2): (0.5, 1.0),
    ("lea-mvd", "own", 3): (0.09, 0.2),
}  # fmt: skip


def test_the_study_crosses_all_settings():
    found = forensics.combinations(PAPER)
    assert not found.duplicated(forensics.SETTINGS).any()
    started = found[found["start"] != "none"]
    levels = (("N(0, 0.1)", "N(0, 0.01)", "U(±0.1)"), ("epochs", "batch"), ("0.1", "0.01"), ("default", "printed"))
    every = set(itertools.product(*levels, ("own", "shared")))
    assert set(started[forensics.SETTINGS].itertuples(index=False, name=None)) == every
    free = set(itertools.product(levels[0], ("none",), ("–",), levels[3], ("own", "shared")))
    assert set(found[found["start"] == "none"][forensics.SETTINGS].itertuples(index=False, name=None)) == free


def test_a_search_stands_beside_the_contrastive_divergence_of_its_first_weights():
    for row in forensics.combinations(PAPER).itertuples():
        search, baseline = PAPER.training_of(str(row.method)), PAPER.training_of(str(row.baseline))
        kind = {"N(0, 0.1)": ("normal", 0.1), "N(0, 0.01)": ("normal", 0.01), "U(±0.1)": ("uniform", 0.1)}
        assert (baseline.initial_weights, baseline.weight_scale) == kind[str(row.weights)]
        assert search.x0 == row.start
        if row.start != "none":
            assert dataclasses.replace(search, sigma0=0.1, x0="epochs", device=None, precision=None) == baseline
            assert f"{search.sigma0:g}" == row.sigma0
        assert baseline.learning_rate == 0.1
    assert PAPER.reading_of(f"lea-mvd:{PRINTED_LETTER}") == PAPER.reading_of("lea-mvd:printed")


def test_nothing_depends_on_what_is_crossed_once(tmp_path):
    """Without a start solution neither sigma0 nor first weights change a search."""
    methods = ("lea-mvd:x0=none", "lea-mvd:x0=none+sigma0=0.01", "lea-mvd:x0=none+initial_weights=uniform")
    study = Study(n_images=40, layers=(6, 5), methods=methods, inputs=("own",), training=Training(n_elite=2))
    found = records.run(dataclasses.replace(study, reading=dataclasses.replace(study.reading, n_gen=3)), str(tmp_path))
    errors = found.groupby("method", sort=False)["mean_field"].apply(list)
    assert errors.iloc[0] == errors.iloc[1] == errors.iloc[2]


def test_distances_of_a_table_made_by_hand():
    rows = forensics.distances(SMALL, table(ERRORS))
    assert len(rows) == 2 * 3 * 6, "three pairs on two kinds of inputs, counted in six ways"
    pd.testing.assert_frame_equal(rows, forensics.distances(SMALL, table(ERRORS, n_images=5_000)))
    own = rows[(rows["method"] == "lea-mvd") & (rows["inputs"] == "own")].set_index(forensics.COUNTED)
    columns = ["cd, RBM 2", "lea-mvd, RBM 2", "lea-mvd, RBM 3"]
    assert list(forensics.NUMBERS.items()) == list(zip(columns, (50_000, 5_000, 900), strict=True))
    assert own.loc[("mean-field", 10_000), columns].tolist() == pytest.approx([50_000, 5_000, 900])
    assert own.loc[("mean-field", 10_000), "factor"] == pytest.approx(1)
    assert own.loc[("mean-field", 60_000), "factor"] == pytest.approx(6)
    assert own.loc[("sampled", 10_000), columns].tolist() == pytest.approx([100_000, 10_000, 2_000])
    assert own.loc[("each its own", 60_000), columns].tolist() == pytest.approx([600_000, 30_000, 5_400])
    miss = np.log([12, 6, 6])
    assert own.loc[("each its own", 60_000), "factor"] == pytest.approx(np.exp(np.sqrt((miss**2).sum() / 3)))
    assert own["baseline"].unique().tolist() == ["cd"]


def test_the_nearest_are_counted_in_their_best_way_once_each():
    rows = forensics.distances(SMALL, table(ERRORS))
    found = forensics.nearest(rows, 3)
    assert found.loc[0, ["method", "inputs", "measure", "images"]].tolist() == ["lea-mvd", "own", "mean-field", 10_000]
    assert not found.duplicated(forensics.SETTINGS).any()
    best = rows.groupby([*forensics.SETTINGS, "baseline"])["factor"].min().sort_values()
    assert found["factor"].tolist() == pytest.approx(best.iloc[:3].tolist())
    named = forensics.methods(forensics.nearest(rows, 100))
    assert named[0].startswith("cd")
    assert set(named) == set(SMALL.methods) - {"cd:learning_rate=0+n_gen=1"}


def test_effects_are_geometric_means_and_the_best_factor():
    rows = forensics.distances(SMALL, table(ERRORS))
    found = forensics.effects(rows)
    images = found.loc["images", list(forensics.NUMBERS)]
    assert (images.loc["60000"] / images.loc["10000"]).tolist() == pytest.approx([6, 6, 6])
    own = np.exp(np.log(rows.loc[rows["inputs"] == "own", "lea-mvd, RBM 3"]).mean())
    assert found.loc[("inputs", "own"), "lea-mvd, RBM 3"] == pytest.approx(own)
    assert found.loc[("inputs", "own"), "factor"] == pytest.approx(1)


def test_untrained_features_have_their_constant():
    rows = table(ERRORS).assign(mean_field_ratio=2.0, input_std=0.25)
    found = forensics.untrained(SMALL, rows)
    assert found.index.tolist() == [(layer, "N(0, 0.1)") for layer in (1, 2, 3)]
    at_first = rows.query("method == 'cd:learning_rate=0+n_gen=1' and inputs == 'own' and iteration == 0")
    per_image = at_first.groupby("layer")["mean_field"].mean() / 2.0 / 100
    assert found["constant per 10,000"].tolist() == pytest.approx((1e4 * per_image).tolist())
    assert found["input std"].tolist() == [0.25] * 3


def test_a_study_without_pairs_has_no_distances():
    study = dataclasses.replace(SMALL, methods=("cd", "cma-es"))
    rows = forensics.distances(study, table({("cd", "own", 2): (1.0, 1.0)}))
    assert rows.empty
    assert forensics.effects(rows).empty


def test_quoted_numbers_are_those_of_the_nearest():
    rows = forensics.distances(SMALL, table(ERRORS))
    features = pd.DataFrame(
        {"constant per 10,000": [1.5, 2.5]},
        index=pd.MultiIndex.from_product([(2, 3), ["U(±0.1)"]], names=["layer", "weights"]),
    )
    found = forensics.quoted(rows, features)
    assert (found["tried"], found["searches"], found["counted"]) == (6, 4, 36)
    assert found[forensics.FACTOR] == pytest.approx(1)
    least = rows[list(forensics.NUMBERS)].min().tolist()
    assert [found[f"least-{i}"] for i in (1, 2, 3)] == pytest.approx(least, rel=1e-5)
    assert (found["untrained-2"], found["untrained-3"]) == (1.5, 2.5)
    assert "untrained-3" not in forensics.quoted(rows, features.iloc[:1])
