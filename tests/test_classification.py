"""Section 8: fine-tuning beside plain NumPy, probes, likelihoods, and tables with known answers."""

from itertools import pairwise, product
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import Line2D
from scipy.special import logsumexp
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier
from sklearn.utils import shuffle

from figures import assert_methods_have_their_colors, assert_sound, faces_drawn
from leamvd.networks.dbn import layer_seed
from leamvd.networks.rbm import RBMParameters
from leamvd_paper.studies import classification, layers, plots, statistics
from leamvd_paper.studies.classification import GLOROT, PROFILES, Settings, fine_tune, random_stack
from leamvd_paper.studies.layers import Images, rbms
from leamvd_paper.studies.results import Result

RNG = np.random.default_rng(0)
V, LABELS = load_digits(return_X_y=True)
V, LABELS = V[:60] / 16, LABELS[:60]
DIGITS = Images(n_images=60)
SMALL = {
    "layers": (4, 3),
    "n_images": 60,
    "n_gen": 2,
    "epochs": 2,
    "n_chains": 10,
    "n_temperatures": 5,
}


def stack(*sizes: int, scale: float = 0.1) -> list[RBMParameters]:
    pairs = pairwise(sizes)
    return [
        RBMParameters(
            scale * RNG.standard_normal((n, m)), np.zeros(n), scale * RNG.standard_normal(m)
        )
        for n, m in pairs
    ]


def as_result(layers: list[RBMParameters]) -> Result:
    named = {
        f"{name}{n}": a
        for n, rbm in enumerate(layers, start=1)
        for name, a in rbm._asdict().items()
    }
    return Result(pd.DataFrame(), named)


def test_an_epoch_is_a_step_down_the_gradient_of_the_cross_entropy() -> None:
    """Of one mini-batch, so that order does not matter: beside backpropagation in plain NumPy, for
    two epochs.
    """
    layers = stack(64, 5, 4)
    weights, biases = (
        [*(rbm.W for rbm in layers), np.zeros((4, 10))],
        [*(rbm.c for rbm in layers), np.zeros(10)],
    )
    for epoch, (classifier, loss) in enumerate(
        fine_tune(layers, V, LABELS, epochs=2, tuning_rate=0.8, seed=0), start=1
    ):
        H = [V]
        for W, c in zip(weights[:-1], biases[:-1], strict=True):
            H.append(1 / (1 + np.exp(-(H[-1] @ W + c))))
        P = np.exp(H[-1] @ weights[-1] + biases[-1])
        P /= P.sum(axis=1, keepdims=True)
        assert loss == pytest.approx(-np.log(P[np.arange(60), LABELS]).mean())
        D, steps = (P - np.eye(10)[LABELS]) / 60, []
        for i in (2, 1, 0):
            steps.append((i, H[i].T @ D, D.sum(axis=0)))
            D = (D @ weights[i].T) * H[i] * (1 - H[i])
        rate = 0.8 * (1 - (epoch - 1) / 2)  # momentum of the epoch before is forgotten
        for i, W, b in steps:
            weights[i], biases[i] = weights[i] - rate * W, biases[i] - rate * b
        for ours, theirs in zip(
            weights + biases, classifier.coefs_ + classifier.intercepts_, strict=True
        ):
            np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-12)


def test_mini_batches_go_on_with_momentum_in_the_order_of_the_epoch() -> None:
    """Of a softmax layer alone, beside plain NumPy: 25, 25 and 10 images, and the last ten count
    as ten.
    """
    (layer,) = stack(64, 6)
    hidden, top = (layer.W, layer.c), (np.zeros((6, 10)), np.zeros(10))
    given = {"epochs": 3, "tuning_rate": 0.6, "seed": 5, "batch_size": 25, "momentum": 0.7}
    for epoch, (classifier, loss) in enumerate(fine_tune([layer], V, LABELS, **given), start=1):
        rate, total = 0.6 * (1 - (epoch - 1) / 3), 0.0
        speed = [np.zeros_like(p) for p in (*hidden, *top)]
        order = shuffle(np.arange(60), random_state=classifier.random_state)
        for rows in np.split(order, [25, 50]):
            H = 1 / (1 + np.exp(-(V[rows] @ hidden[0] + hidden[1])))
            P = np.exp(H @ top[0] + top[1])
            P /= P.sum(axis=1, keepdims=True)
            total -= np.log(P[np.arange(len(rows)), LABELS[rows]]).sum()
            D = (P - np.eye(10)[LABELS[rows]]) / len(rows)
            E = (D @ top[0].T) * H * (1 - H)
            slopes = (V[rows].T @ E, E.sum(axis=0), H.T @ D, D.sum(axis=0))
            speed = [0.7 * s - rate * g for s, g in zip(speed, slopes, strict=True)]
            moved = [p + s for p, s in zip((*hidden, *top), speed, strict=True)]
            hidden, top = tuple(moved[:2]), tuple(moved[2:])
        assert loss == pytest.approx(total / 60)
        theirs = (*classifier.coefs_, *classifier.intercepts_)
        ours = (hidden[0], top[0], hidden[1], top[1])
        for a, b in zip(theirs, ours, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_each_epoch_and_each_seed_has_an_order_of_images_of_its_own() -> None:
    orders = []
    for seed in (0, 1):
        steps = fine_tune(stack(64, 5), V, LABELS, epochs=3, tuning_rate=0.1, seed=seed)
        orders += [classifier.random_state for classifier, _ in steps]
    assert len({*orders}) == 6


def test_an_interruption_ends_fine_tuning(monkeypatch: pytest.MonkeyPatch) -> None:
    """scikit-learn's classifier only warns of it."""
    tuning = fine_tune(stack(64, 5), V, LABELS, epochs=3, tuning_rate=0.2, seed=0)
    next(tuning)
    monkeypatch.setattr(MLPClassifier, "_backprop", Mock(side_effect=KeyboardInterrupt))
    with pytest.warns(UserWarning, match="interrupted"), pytest.raises(KeyboardInterrupt):
        next(tuning)


def test_random_weights_are_those_that_contrastive_divergence_starts_from() -> None:
    from leamvd.networks.contrastive_divergence import ContrastiveDivergence

    first, second = rbms(random_stack((49, 30, 20), "0.1", "float32", seed=3))
    own = ContrastiveDivergence(np.zeros((1, 30), "float32"), 20, seed=layer_seed(3, 2)).rbm
    assert (second.W == own.W).all()
    assert first.W.dtype == np.float32
    assert not first.b.any()
    wide = rbms(random_stack((400, 200), GLOROT, "float64", seed=0))[0]
    assert wide.W.std() == pytest.approx(np.sqrt(2 / 600), rel=0.02)


def test_a_probe_does_not_see_the_scale_of_features() -> None:
    found = layers.probe(V, LABELS, V[::-1], LABELS[::-1])
    assert layers.probe(1e3 * V + 5, LABELS, 1e3 * V[::-1] + 5, LABELS[::-1])[:2] == pytest.approx(
        found[:2]
    )
    assert found[0] == found[1] < 0.1
    assert 0 < found[2] <= layers.STEPS


def test_probes_begin_with_the_images_and_an_identical_class_is_never_told_apart() -> None:
    rows = layers.probes(as_result(stack(49, 6, 3, scale=0.0)), DIGITS, "float64").rows
    assert rows["layer"].tolist() == [0, 1, 2]
    assert rows["features_std"].tolist()[1:] == pytest.approx([0, 0], abs=1e-12)
    assert rows["test_error"][0] < 0.5 < rows["test_error"][1]
    assert rows["seconds"].is_monotonic_increasing
    above = layers.probes(as_result(stack(49, 6, 3)), DIGITS, "float64", first=2).rows
    assert above["layer"].tolist() == [2]


def test_a_model_of_independent_pixels_has_their_likelihood() -> None:
    """Without weights an RBM is independent pixels; with their rates as biases chains have nothing
    to estimate.
    """
    from leamvd.networks import likelihood

    base = likelihood.base_rates(DIGITS.load("float64").train)
    rbm = RBMParameters(np.zeros((49, 3)), likelihood.independent(base).b, np.zeros(3))
    rows = classification.likelihoods(
        as_result([rbm]), DIGITS, "float64", seed=0, n_chains=10, n_temperatures=3
    ).rows
    assert rows["chains"].tolist() == [2, 4, 6, 8, 10]
    np.testing.assert_allclose(rows["log_likelihood"], rows["independent"])
    np.testing.assert_allclose(rows["error"], 0, atol=1e-9)


def test_each_batch_of_chains_brings_the_partition_function_nearer() -> None:
    """Beside the sum over all hidden states of a small RBM."""
    (rbm,) = stack(49, 3, scale=0.3)
    rows = classification.likelihoods(
        as_result([rbm]), DIGITS, "float64", seed=0, n_chains=200, n_temperatures=200
    ).rows
    h = np.array([*product((0, 1), repeat=3)])
    exact = logsumexp(h @ rbm.c + np.logaddexp(0, h @ rbm.W.T + rbm.b).sum(axis=1))
    assert rows["log_z"].nunique() == classification.BATCHES
    assert rows["log_z"].iloc[-1] == pytest.approx(exact, abs=4 * rows["error"].iloc[-1])
    assert rows["error"].iloc[-1] < rows["error"].iloc[0]
    other = classification.likelihoods(
        as_result([rbm]), DIGITS, "float64", seed=1, n_chains=10, n_temperatures=1
    ).rows
    assert {*other["independent"]} == {*rows["independent"]}, "of the same bits for every stack"
    assert other["log_z"].iloc[0] != rows["log_z"].iloc[0], "by chains of its own"


def test_likelihoods_are_of_test_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of dark ones, whose bits are all off: pixels are as often on as in training images."""
    from leamvd.networks import likelihood

    data = DIGITS.load("float64")
    monkeypatch.setattr(Images, "load", lambda *_: data._replace(test=np.zeros((5, 49))))
    base = likelihood.base_rates(data.train)
    rbm = as_result([likelihood.independent(base)])
    rows = classification.likelihoods(rbm, DIGITS, "float64", 0, 10, 1).rows
    off = -np.logaddexp(0, base).sum()
    assert rows["independent"].tolist() == pytest.approx([off] * 5)
    assert rows["log_likelihood"].tolist() == pytest.approx([off] * 5)


def test_a_mistake_is_named_by_the_class_that_the_network_says() -> None:
    labels = DIGITS.load("float64").test_labels
    said = labels.copy()
    said[[3, 8]] = (labels[[3, 8]] + 1) % 10
    rows = classification.mistakes(Result(pd.DataFrame(), {"named": said}), DIGITS, "float64").rows
    assert rows["image"].tolist() == [3, 8]
    assert rows["named"].tolist() == said[[3, 8]].tolist()


def test_tables_have_every_stack_and_mistakes_are_those_of_the_last_epoch(tmp_path) -> None:
    found = classification.tables("quick", tmp_path, **SMALL, seeds=(1,), scales=("0.1",))
    for table in found[:3]:
        assert table["method"].unique().tolist() == ["cd", "lea-mvd", "random-0.1"]
    ends = found.runs[found.runs["epoch"] == 2].set_index("method")["test_error"]
    counted = found.mistakes.groupby("method").size()
    n_images = counted["cd"] / ends["cd"]
    assert counted["lea-mvd"] / ends["lea-mvd"] == pytest.approx(n_images)
    assert n_images == pytest.approx(len(DIGITS.load("float64").test))


def test_other_test_images_widen_an_interval() -> None:
    """Of equal errors on the same images nothing is left; on images of their own, four times as
    many halve it.
    """
    rows = [
        (name, seed, 10 * seed + image)
        for name in ("a", "same")
        for seed in range(4)
        for image in range(3)
    ]
    # the same for all seeds
    rows += [("other", seed, 50 + image) for seed in range(4) for image in range(3)]
    listed = pd.DataFrame(rows, columns=["method", "seed", "image"])
    assert classification.over_test_images(listed, "same", "a", 100) == 0
    assert np.isnan(classification.over_test_images(listed[listed["seed"] == 0], "other", "a", 100))
    copies = pd.concat([listed.assign(image=listed["image"] + 100 * copy) for copy in range(4)])
    few, many = (
        classification.over_test_images(t, "other", "a", n)
        for t, n in ((listed, 100), (copies, 400))
    )
    assert few / many == pytest.approx(2, rel=0.05)
    # of 100 and of 400 images
    ends = product(("few", "many"), ("a", "other"), range(4), ((1, 0.1), (2, 0.03)))
    runs = pd.DataFrame([(*run, *epoch) for *run, epoch in ends])
    runs = runs.set_axis(["study", "method", "seed", "epoch", "test_error"], axis=1)
    both = pd.concat([listed.assign(study="few"), copies.assign(study="many")])
    ratios = statistics.tested(classification.classify_better(runs, both, "other", "a"))
    for study, half in (("few", few), ("many", many)):
        assert ratios.loc[study, ["effect", "low", "high"]].tolist() == pytest.approx(
            [1, np.exp(-half), np.exp(half)]
        )


def test_the_picture_has_a_point_for_each_stack_and_a_level_for_each_study() -> None:
    rows = [
        ("mnist-7x7", "cd", 0.1, 3.0),
        ("mnist-7x7", "cd:n_gen=1", 0.3, 5.0),
        ("mnist-7x7", "cd", 0.2, 4.0),
        ("mnist-28x28", "lea-mvd", 0.04, 1.6),
    ]
    stacks = pd.DataFrame(rows, columns=["study", "method", "ratio", "error"])
    levels = pd.Series({"mnist-28x28": 2.0, "mnist-7x7": 4.5})
    figure = classification.plot_worth(stacks, levels)
    plots.plt.close(figure)
    assert_sound(figure)
    assert_methods_have_their_colors(figure)
    small, large = figure.axes
    assert (small.get_title(), large.get_title()) == ("7×7 pixels", "28×28 pixels")
    assert (small.get_xlabel(), figure.get_supylabel()) == (
        "error / constant image's",
        "test error after fine-tuning, %",
    )
    assert faces_drawn(small) == {(0.1, 3, 0.2, 4): True, (0.3, 5): False}
    assert faces_drawn(large) == {(0.04, 1.6): True}
    for ax, level in ((small, 4.5), (large, 2.0)):
        assert set(ax.lines[-1].get_ydata()) == {level}
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


@pytest.mark.parametrize("draw", [classification.plot_errors, classification.plot_probes])
def test_no_two_methods_look_alike_in_a_figure(draw) -> None:
    methods = ["cd", "lea-mvd", "random-0.01", "random-0.1", "random-glorot"]
    rows = product(("mnist-7x7", "mnist-28x28"), methods, (1, 2))
    table = pd.DataFrame(rows, columns=["study", "method", "epoch"])
    table = table.assign(layer=table["epoch"], mean=2.0, low=1.0, high=3.0)
    figure = draw(table)
    for ax in figure.axes:
        handles, labels = ax.get_legend_handles_labels()
        lines = [drawn if isinstance(drawn, Line2D) else drawn.lines[0] for drawn in handles]
        looks = {(line.get_color(), line.get_linestyle()) for line in lines}
        assert len(looks) == len(labels) == len(methods)
    plots.plt.close(figure)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("scales", ("wide",)),
            ("scales", ("-1",)),
            ("scales", ("0.1", "0.10")),
            ("n_chains", 12),
            ("epochs", 0),
            ("tuning_rate", 0.0),
        ),
        *(("inputs", ("shared",)), ("n_temperatures", 0)),
    ],
)
def test_bad_settings_are_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=name):
        Settings(**{name: value})


def test_what_is_recorded_cannot_be_changed_and_profiles_are_known() -> None:
    with pytest.raises(ValueError, match="epochs"):
        classification.tables(epochs=3)
    with pytest.raises(ValueError, match="profile"):
        classification.tables("small")
    assert classification.tables().runs["epoch"].max() == PROFILES["paper"].epochs


def test_random_weights_have_the_scale_that_is_asked_for_in_each_layer() -> None:
    sizes = (300, 150, 80)
    for scale, known in (
        (GLOROT, [np.sqrt(2 / 450), np.sqrt(2 / 230)]),
        ("0.3", [0.3, 0.3]),
        ("0", [0, 0]),
    ):
        found = random_stack(sizes, scale, "float64", seed=1)
        assert found.rows["std"].tolist() == pytest.approx(known)
        for rbm, std in zip(rbms(found), known, strict=True):
            assert rbm.W.std() == pytest.approx(std, rel=0.03)
            assert not rbm.c.any()
    stds = [0.5, 0.02]
    for rbm, std in zip(
        rbms(classification.normal_stack(sizes, stds, "float64", 1)), stds, strict=True
    ):
        assert rbm.W.std() == pytest.approx(std, rel=0.03)


def test_each_epochs_error_is_of_test_images_and_the_last_network_names_them() -> None:
    data = DIGITS.load("float64")
    start = stack(49, 6, 5)
    found = classification.fine_tuned(as_result(start), DIGITS, "float64", 4, 3, 0.3)
    known = []
    for classifier, loss in fine_tune(
        start, data.train, data.train_labels, epochs=3, tuning_rate=0.3, seed=4
    ):
        named = classifier.predict(data.test)
        known.append((len(known) + 1, (named != data.test_labels).mean(), loss))
    assert found.rows[["epoch", "test_error", "loss"]].to_numpy() == pytest.approx(np.array(known))
    assert found.arrays["named"].tolist() == named.tolist()
    assert found.rows["seconds"].is_monotonic_increasing


def test_plans_measure_whole_stacks_and_the_likelihood_of_first_layers() -> None:
    study = PROFILES["quick"].changed(**SMALL, seeds=(3, 1), scales=("0.2", GLOROT)).known()
    planned = classification.plan(study)
    methods = ("cd", "lea-mvd", "random-0.2", "random-glorot")
    for table, (columns, calls) in planned.items():
        assert columns == classification.RUN
        kept = methods[:2] if table == "mistakes" else methods
        assert {*calls} == {(study.size, *run) for run in product(kept, (3, 1))}
    for label in planned["runs"][1]:
        tuned, probed, likely = (
            planned[name][1][label].arguments for name in ("runs", "probes", "likelihoods")
        )
        _, method, seed = label
        whole = tuned["stack"].arguments
        assert probed["top"].key == tuned["stack"].key
        first = likely["stack"].arguments
        if method.startswith("random"):
            assert (whole["sizes"], first["sizes"]) == ((49, 4, 3), (49, 4))
            for one in (whole, first):
                scale = method.removeprefix("random-")
                assert (one["scale"], one["dtype"], one["seed"]) == (scale, "float64", seed)
        else:
            own = layers.stack(study, method, seed)
            assert (tuned["stack"].key, likely["stack"].key) == (own[1].key, own[0].key)
            named = planned["mistakes"][1][label].arguments
            assert named["tuned"].key == planned["runs"][1][label].key


def test_two_classes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    study = PROFILES["quick"].changed(**SMALL)
    data = study.images.load("float64")
    for n_classes in (2, 3):
        labels = data.train_labels % n_classes
        monkeypatch.setattr(
            Images, "load", lambda *_, labels=labels: data._replace(train_labels=labels)
        )
        if n_classes == 2:
            with pytest.raises(ValueError, match="classes"):
                study.on_disk()
        else:
            assert study.on_disk().layers == study.layers


def test_errors_after_a_method_are_over_those_of_the_other_with_the_same_seed() -> None:
    """At the last epoch of each study; a study without a list of mistakes has no interval."""
    errors = {"cd": (0.2, 0.1, 0.4), "lea-mvd": (0.1, 0.08, 0.1), "cd:n_gen=1": (0.3, 0.3, 0.3)}
    rows = []
    for method, own in errors.items():
        for seed in (2, 0, 1):
            for study, last in (("b", 2), ("a", 3), ("unlisted", 1)):
                for epoch in (last, 0):
                    error = own[seed] if epoch == last else 1 - own[seed]
                    rows.append((study, method, seed, epoch, error))
    runs = pd.DataFrame(rows, columns=["study", "method", "seed", "epoch", "test_error"])
    listed = []
    for study, method, seed in product("ba", errors, (0, 1, 2)):
        for image in range(round(50 * errors[method][seed])):
            listed.append((study, method, seed, (3 * seed + image) % 50))
    wrong = pd.DataFrame(listed, columns=["study", "method", "seed", "image"])
    found = classification.classify_better(runs, wrong)
    assert [*found] == ["b", "a"]
    for study, effect in found.items():
        ratios = [1 / 2, 0.8, 1 / 4]
        assert effect.effect == pytest.approx(np.prod(ratios) ** (1 / 3))
        assert (effect.lower, effect.upper, effect.p) == (-np.inf, 1, 1 / 8)
        half = classification.over_test_images(wrong[wrong["study"] == study], "lea-mvd", "cd", 50)
        ends = np.log([effect.rank_low, effect.rank, effect.rank_high])
        assert np.diff(ends) == pytest.approx([half, half])
    other = classification.classify_better(runs, wrong, "cd:n_gen=1", "lea-mvd")["a"]
    assert other.effect == pytest.approx((3 * 0.3 / 0.08 * 3) ** (1 / 3))
