"""What measurements of stacks say, of numbers made by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd.analysis import pretraining
from leamvd.experiments.stacks import STEPS
from leamvd.studies.records import Measured


def test_means_and_pairs_of_known_numbers() -> None:
    rows = [
        ("s", method, seed, error + 0.01 * seed)
        for method, errors in {"cd": (0.1, 0.1, 0.1), "lea-mvd": (0.32, 0.3, 0.28)}.items()
        for seed, error in enumerate(errors)
    ]
    table = pd.DataFrame(rows, columns=["study", "method", "seed", "test_error"])
    half = 4.302652729911275 * np.array([0.01, 0.02]) / np.sqrt(3)  # Student's t of two degrees of freedom
    found = pretraining.means(table, "test_error").set_index("method").loc["cd", ["mean", "low", "high"]]
    assert found.tolist() == pytest.approx([0.11, 0.11 - half[0], 0.11 + half[0]])
    (pair,) = pretraining.against_cd(table, "test_error").itertuples(index=False)
    assert (pair.method, pair.baseline, pair.runs) == ("lea-mvd", "cd", 3)
    assert [pair.difference, pair.low, pair.high] == pytest.approx([0.2, 0.2 - half[1], 0.2 + half[1]])


@pytest.fixture
def whole() -> Measured:
    """Measurements of two studies, the second's errors half of the first's; training errors are other numbers."""
    errors = {"cd": 0.1, "lea-mvd": 0.3, "random-0.01": 0.9, "random-0.1": 0.5}
    one = [("mnist-7x7", method, seed, error + 0.01 * seed) for method, error in errors.items() for seed in (0, 1, 2)]
    stacks = pd.DataFrame(one, columns=["study", "method", "seed", "test_error"])
    stacks = pd.concat([stacks, stacks.assign(study="mnist-28x28", test_error=stacks["test_error"] / 2)])
    runs = [stacks.assign(epoch=epoch, test_error=stacks["test_error"] * (3 - epoch)) for epoch in (1, 2)]
    probes = [
        stacks.assign(
            layer=layer, test_error=stacks["test_error"] / (layer or 4), train_error=0.001, steps=STEPS - layer
        )
        for layer in (0, 1, 2)
    ]
    chains = [
        stacks.assign(iteration=i, log_likelihood=-10.0 * i - stacks["seed"], independent=-50.0, error=0.1 * i)
        for i in (1, 2)
    ]
    return Measured(pd.concat(runs), pd.concat(probes), pd.concat(chains))


def test_quoted_numbers_are_those_of_each_study(whole: Measured) -> None:
    found = pretraining.quoted(whole)
    seven = {key.removeprefix("7x7-"): value for key, value in found.items() if key.startswith("7x7-")}
    expected = {
        "error-cd": 11.0, "error-lea-mvd": 31.0, "first-cd": 22.0, "probe-cd": 5.5, "likelihood-cd": -21.0,
        "error-random": 51.0, "error-random-0.01": 91.0, "probe-random": 25.5, "difference": 20.0,
        "difference-low": 20.0, "difference-high": 20.0, "seeds": 3, "probe-capped": 100 / 3,
        "likelihood-independent": -50.0, "likelihood-error": 0.2, "probe-pixels": 100 * (0.45 + 0.01) / 4,
    }  # fmt: skip
    assert {key: seven[key] for key in expected} == pytest.approx(expected, rel=1e-5)
    assert found["28x28-error-cd"] == pytest.approx(5.5)
    assert found["28x28-difference"] == pytest.approx(10)


def test_an_interval_over_test_images_is_widest_where_no_image_is_missed_by_both() -> None:
    """Each network errs on the same images with every seed: 10 with one method, 20 others with its baseline."""
    n_images, wrong = 10_000, {"lea-mvd": range(10), "cd": range(10, 30)}
    rows = [(method, seed, image) for method, images in wrong.items() for seed in range(5) for image in images]
    mistakes = pd.DataFrame(rows, columns=["method", "seed", "image"])
    apart = pretraining.over_test_images(mistakes, "lea-mvd", "cd", n_images)
    assert apart == pytest.approx(1.96 * np.sqrt((1000 + 500) / n_images), rel=1e-3)
    assert pretraining.over_test_images(mistakes, "cd", "lea-mvd", n_images) == pytest.approx(apart)
    common = mistakes.assign(image=mistakes["image"].where(mistakes["method"] == "lea-mvd", mistakes["image"] - 5))
    assert pretraining.over_test_images(common, "lea-mvd", "cd", n_images) < 0.9 * apart, "five images are in common"


def test_an_interval_over_test_images_covers_as_often_as_it_says() -> None:
    rng, n_images, covered = np.random.default_rng(2), 400, []
    for _ in range(300):
        hard = rng.beta(0.3, 1.2, n_images)  # images are easy or hard for both methods
        rows = [
            (method, seed, image)
            for method, factor in (("lea-mvd", 1.0), ("cd", 0.8))
            for seed in range(6)
            for image in np.flatnonzero(rng.random(n_images) < np.clip(hard * factor * rng.lognormal(0, 0.05), 0, 1))
        ]
        mistakes = pd.DataFrame(rows, columns=["method", "seed", "image"])
        half = pretraining.over_test_images(mistakes, "lea-mvd", "cd", n_images)
        counts = mistakes["method"].value_counts()
        covered.append(abs(np.log(counts["lea-mvd"] / counts["cd"]) - np.log(1 / 0.8)) <= half)
    assert stats.binomtest(sum(covered), len(covered), 0.95).pvalue > 1e-4
