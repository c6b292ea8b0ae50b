import numpy as np
import pandas as pd
import pytest

from leamvd.paper import claims
from leamvd.paper.claims import Verdict


def frame(errors, *, ratio=1.0, n_images=10_000, n_visible=49):
    """Records: `errors[inputs, layer, method]` is a list of errors by iteration; twelve seeds differ by 0.1 % each.

    The sampled error is `ratio` times the mean-field one, and the constant image's error is 100.
    """
    rows = [
        {
            "method": method, "inputs": inputs, "layer": layer, "seed": seed, "iteration": iteration,
            "mean_field": error * (1 + 1e-3 * seed), "sampled": ratio * error * (1 + 1e-3 * seed),
            "mean_field_ratio": error * (1 + 1e-3 * seed) / 100, "n_images": n_images, "n_visible": n_visible,
            "input_std": 0.25,
        }
        for (inputs, layer, method), run in errors.items() for seed in range(12) for iteration, error in enumerate(run)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def upper(own, shared=None):
    """Final errors of layers 2 and 3 by method, in one inputs or two."""
    return frame(
        {
            (inputs, layer, method): [1.0, error]
            for inputs, finals in (("own", own), ("shared", shared)) if finals
            for layer in (2, 3) for method, error in finals.items()
        }
    )  # fmt: skip


def test_c3_asks_whether_the_seed_was_improved():
    kept = {("own", 1, "cd"): [9.0, 1.0], ("own", 1, "lea-mvd"): [5.0, 4.99], ("own", 1, "cma-es"): [5.0, 6.0]}
    assert claims.c3(frame(kept)).answer == "holds"
    assert claims.c3(frame(kept | {("own", 1, "cma-es"): [5.0, 4.9]})).answer == "does not hold"
    table = frame(kept | {("own", 1, "cma-es"): [5.0, 4.9]})
    table.loc[table["iteration"] == 1, "sampled"] *= 2  # better in one measure, worse in the other
    verdict = claims.c3(table)
    assert verdict.answer == "depends on the view"
    assert "mean-field lea-mvd -0.2 % (lower in 12/12 runs), cma-es -2 % (lower in 12/12 runs)" in verdict.text
    assert "cd" not in verdict.text.split(":")[1]
    assert claims.c3(frame({("own", 1, "cd"): [9.0, 1.0]})).answer == "open"


def test_c4_needs_both_methods_below_contrastive_divergence_in_both_layers():
    lower = {"cd": 10.0, "lea-mvd": 2.0, "cma-es": 3.0}
    verdict = claims.c4(upper(lower))
    assert verdict.answer == "holds"
    assert "lea-mvd and cma-es to cd, own inputs, 0.2 to 0.3 (lower in 96 of 96 pairs of runs)" in verdict.text
    assert "8 of 8 comparisons differ significantly" in verdict.text
    assert claims.c4(upper(lower | {"cma-es": 11.0})).answer == "does not hold"
    assert claims.c4(upper(lower, {"cd": 1.0, "lea-mvd": 2.0, "cma-es": 3.0})).answer == "depends on the view"
    assert claims.c4(upper({"cd": 10.0, "lea-mvd": 2.0})).answer == "open"


def test_few_runs_are_no_evidence():
    table = upper({"cd": 10.0, "lea-mvd": 2.0, "cma-es": 3.0})
    few = claims.c4(table[table["seed"] < 3])
    assert few.answer == "open"
    assert "With 3 runs no difference can be significant" in few.text
    # eight runs could reach 0.05 in one comparison, but not in all eight
    assert "With 8 runs no difference can be significant" in claims.c4(table[table["seed"] < 8]).text
    one = claims.c4(table[table["seed"] == 0])
    assert one.answer == "open"
    assert one.text.endswith("One run: no test.")
    # lower in the median is not enough where the runs disagree
    mixed = table.copy()
    mixed.loc[(mixed["method"] == "lea-mvd") & (mixed["seed"] > 6), ["mean_field", "sampled"]] *= 10
    assert claims.c4(mixed).answer == "open"


def test_c5_needs_lea_mvd_below_both():
    assert claims.c5(upper({"cd": 10.0, "lea-mvd": 2.0, "cma-es": 3.0})).answer == "holds"
    assert claims.c5(upper({"cd": 10.0, "lea-mvd": 3.0, "cma-es": 2.0})).answer == "does not hold"
    assert claims.c5(upper({"cd": 1.0, "lea-mvd": 2.0, "cma-es": 3.0})).answer == "does not hold"
    assert claims.c5(upper({"cd": 1.0, "cma-es": 3.0})).answer == "open"


def test_c6_counts_from_the_first_iteration():
    flat = {("own", 1, "cd"): [100.0, 10.0, 9.5], ("own", 1, "lea-mvd"): [10.0, 10.0, 9.9]}
    verdict = claims.c6(frame(flat))
    assert verdict.answer == "holds"
    assert "mean-field cd -5 % (lower in 12/12 runs), lea-mvd -1 %" in verdict.text
    assert claims.c6(frame(flat | {("own", 1, "cd"): [100.0, 10.0, 8.0]})).answer == "does not hold"


def test_c7_compares_numbers_per_10000_images_of_mnist():
    near = {("own", 2, "cd"): [1.0, 60_000.0], ("own", 2, "lea-mvd"): [1.0, 4_000.0]}
    assert claims.c7(frame(near), "MNIST").answer == "holds"
    assert claims.c7(frame(near, n_images=60_000), "MNIST").answer == "does not hold"
    assert claims.c7(frame(near, ratio=3.0), "MNIST").answer == "depends on the view"
    far = near | {("own", 2, "lea-mvd"): [1.0, 40_000.0]}
    assert claims.c7(frame(far), "MNIST").answer == "does not hold"
    other = claims.c7(frame(near), "scikit-learn digits")
    assert other.answer == "open"
    assert "cd, own inputs, 60,300 mean-field" in other.text
    assert "in the paper about 50,000 (cd) and 5,000 (lea-mvd)" in other.text
    assert claims.c7(frame({("own", 2, "cd"): [1.0, 1.0]}), "MNIST").answer == "open"


def test_c8_needs_contrastive_divergence_to_stand_still():
    still = {("own", 3, "cd"): [900.0, 100.0, 95.0], ("own", 3, "lea-mvd"): [1.0, 1.0, 1000.0]}
    assert claims.c8(frame(still), "MNIST").answer == "holds"
    moving = claims.c8(frame(still | {("own", 3, "cd"): [900.0, 100.0, 50.0]}), "MNIST")
    assert moving.answer == "does not hold"
    assert "mean-field -50 %, sampled -50 %" in moving.text
    assert claims.c8(frame(still | {("own", 3, "cd"): [9.0, 9.0, 1.0]}), "another").answer == "open"
    alone = claims.c8(frame({("own", 3, "lea-mvd"): [1.0, 900.0]}), "MNIST")
    assert alone.answer == "holds"


def test_c9_divides_by_the_visible_units():
    small = frame({("own", 1, "cd"): [1.0, 10.0], ("own", 2, "cd"): [1.0, 10.0]}, n_images=100)
    large = frame({("own", 1, "cd"): [1.0, 160.0], ("own", 2, "cd"): [1.0, 160.0]}, n_visible=784, n_images=100)
    rows = claims.sizes(small, large)
    assert rows["total"].tolist() == pytest.approx([16.0, 16.0])
    assert rows["per unit"].tolist() == pytest.approx([1.0, 1.0])
    assert rows[["visible small", "visible large"]].iloc[0].tolist() == [49, 784]
    assert claims.c9(small, large).answer == "holds"
    assert "RBM 2 cd 16 in total and 1 per visible unit" in claims.c9(small, large).text
    double = frame({("own", 1, "cd"): [1.0, 80.0], ("own", 2, "cd"): [1.0, 800.0]}, n_visible=784, n_images=50)
    # the first 16 times in total with half the images, the second ten times that
    assert claims.sizes(small, double)["per unit"].tolist() == pytest.approx([1.0, 10.0])
    assert claims.c9(small, double).answer == "holds in part"
    assert claims.c9(large, small).answer == "does not hold"
    assert claims.c9(small, frame({("own", 1, "lea-mvd"): [1.0]})).answer == "open"


def curve(change, epochs):
    """Errors that fall by `change` percent in all over the last ten epochs."""
    return [*np.linspace(100, 10, epochs - 9), *np.linspace(10, 10 * (1 - change / 100), 11)[1:]]


def test_c10_looks_at_the_last_ten_epochs():
    assert len(curve(1, 50)) == 51
    settled = claims.c10(frame({("own", 1, "cd"): curve(0.5, 50), ("own", 2, "cd"): curve(0.1, 50)}))
    assert settled.answer == "holds"
    assert "last 10 of 50 epochs: mean-field -0.5 % (RBM 1), -0.1 % (RBM 2); sampled" in settled.text
    assert claims.c10(frame({("own", 1, "cd"): curve(2, 50)})).answer == "does not hold"
    assert claims.c10(frame({("own", 1, "cd"): curve(-2, 50)})).answer == "does not hold"
    assert claims.c10(frame({("own", 1, "cd"): curve(2, 20)})).answer == "open"
    assert claims.c10(frame({("own", 1, "cd"): curve(0.5, 20)})).answer == "holds"
    assert claims.c10(frame({("own", 1, "cd"): [10.0] * 11})).answer == "open"
    assert claims.c10(frame({("own", 1, "lea-mvd"): [10.0] * 60})).answer == "open"


def test_learned_is_the_ratio_to_the_constant_image():
    text = claims.learned(upper({"cd": 20.0, "lea-mvd": 300.0}))
    assert text == (
        "Mean-field error over that of a constant image, layer by layer, own inputs: "
        "cd 0.201, 0.201 (input std 0.25, 0.25); lea-mvd 3.02, 3.02 (input std 0.25, 0.25)."
    )


def test_per_10000_images():
    rows = claims.per_10000(frame({("own", 2, "cd"): [1.0, 30.0]}, n_images=500, ratio=2.0))
    assert rows["mean_field"].item() == pytest.approx(30 * 1.0055 * 20)
    assert rows["sampled"].item() == pytest.approx(60 * 1.0055 * 20)
    assert rows["constant"].item() == pytest.approx(2000)


def test_markdown():
    assert claims.markdown([Verdict("C3", "holds", "So.")]) == "- **C3: holds.** So."
