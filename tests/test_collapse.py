"""The proposition on weights that win by the reconstruction error."""

import numpy as np
import pytest
from scipy.special import expit

from leamvd.data.images import load
from leamvd.experiments import collapse
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import constant_baseline

DATA = load("digits", side=7, dtype="float64", n_train=300)


@pytest.fixture(scope="module")
def first():
    cd = ContrastiveDivergence(DATA.train, 12, seed=0)
    for _ in range(5):
        cd.epoch()
    return cd.rbm


def test_reconstructions_have_a_row_for_each_stack(first):
    rows = collapse.reconstructions(DATA, {"one": [first], "two": collapse.collapsed(first, 1e-3, DATA.train, 4)})
    assert {name: V.shape for name, V in rows.items()} == dict.fromkeys(("original", "one", "two"), (1, 10, 7, 7))
    rows = {name: V[0] / 255 for name, V in rows.items()}
    assert [np.flatnonzero((DATA.test == V.ravel()).all(axis=1)).size > 0 for V in rows["original"]] == [True] * 10
    assert np.allclose(rows["one"].reshape(10, -1), first.reconstruct(rows["original"].reshape(10, -1)))
    assert np.ptp(rows["two"], axis=0).max() < 1e-12, "the same for all"


def test_the_collapsed_rbm_is_the_constant_image(first):
    lower, upper = collapse.collapsed(first, 0.1, DATA.train, 8)
    H = lower.hidden_given_visible(DATA.train)
    assert np.allclose(H, expit(first.c + 0.1 * DATA.train @ first.W))
    assert np.allclose(upper.reconstruct(H), H.mean(axis=0), rtol=1e-12)
    assert upper.W.shape == (12, 8)
    assert not upper.W.any()
    assert ((H - upper.reconstruct(H)) ** 2).sum() == pytest.approx(constant_baseline(H), rel=1e-9)


def test_the_proposition(first):
    """The error is at most scale^2 / 16 trace(W^T Cov(v) W), and nearly so where biases are zero and weights small."""
    covariance = np.cov(DATA.train.T, bias=True)
    for scale in (3.0, 1.0, 0.1, 1e-3):
        own = collapse.bound(first, scale, DATA.train)
        assert own == pytest.approx(scale**2 / 16 * np.trace(first.W.T @ covariance @ first.W))
        H = collapse.collapsed(first, scale, DATA.train, 4)[0].hidden_given_visible(DATA.train)
        assert constant_baseline(H) / len(H) <= own
    free = first._replace(c=np.zeros_like(first.c))
    H = collapse.collapsed(free, 1e-4, DATA.train, 4)[0].hidden_given_visible(DATA.train)
    assert constant_baseline(H) / len(H) == pytest.approx(collapse.bound(free, 1e-4, DATA.train), rel=1e-3)


def test_collapse_wins_by_both_errors_and_loses_what_was_learned(first):
    table = collapse.collapse(DATA, first, (1.0, 0.03, 1e-3), 12, epochs=3).set_index("scale")
    assert (table["error"] <= table["bound"]).all()
    assert table["error"].tolist() == pytest.approx(table["sampled"].tolist(), rel=1e-9), "no bit of it is used"
    assert table.loc[1e-3, "error"] < 1e-4 * table.loc[1.0, "cd error"]
    assert table["ratio"].tolist() == pytest.approx([1, 1, 1], rel=1e-9)
    assert table.loc[1.0, "cd ratio"] < 1 < table.loc[1e-3, "cd ratio"]
    assert table["accuracy"].min() > 0.75, "the features of RBM 1 hold what they held"
    assert table["accuracy above"].max() < 0.2
    H = collapse.collapsed(first, 1.0, DATA.train, 12)[0].hidden_given_visible(DATA.train)
    cd = ContrastiveDivergence(H, 12, seed=0)
    for _ in range(3):
        cd.epoch()
    expected = ((H - cd.rbm.reconstruct(H)) ** 2).sum()
    assert table.loc[1.0, ["cd error", "cd ratio"]].tolist() == pytest.approx(
        [expected / len(H), expected / constant_baseline(H)]
    )


def test_accuracy_does_not_depend_on_the_scale_of_features():
    own = collapse.accuracy(DATA.train, DATA.test, DATA)
    assert own == pytest.approx(collapse.accuracy(1e-6 * DATA.train, 1e-6 * DATA.test, DATA), abs=1e-9)
    assert 0.85 < own < 1
