"""Estimators by scikit-learn's conventions: its own checks, and that they are what the experiments
train.
"""

import dataclasses
import inspect
import pickle
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import BernoulliRBM
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info, threadpool_limits

from leamvd._support.threads import one_blas_thread
from leamvd.networks import DBN, RBM, DBNClassifier, dbn, estimators
from leamvd.networks.contrastive_divergence import CDSettings, ContrastiveDivergence
from leamvd.networks.objective import reconstruction_errors
from leamvd.networks.rbm import RBMParameters
from leamvd.optimizers import random_streams
from leamvd.optimizers.reading import Reading

PAGE = (Path(__file__).parents[1] / "book" / "train_rbm.md").read_text(encoding="utf-8")
SEED = 2**63 + 5
V = np.random.default_rng(0).random((45, 9))
Y = np.array(["low", "middle", "high"])[np.digitize(V.mean(axis=1), [0.45, 0.55])]


def same(a: Any, b: Any) -> bool:
    """Return whether two layers, or two stacks, have the same bits."""
    return all(p.dtype == q.dtype and np.array_equal(p, q) for p, q in zip(a, b, strict=True))


def trained(
    method: str, X: np.ndarray, n_iter: int, reading: Reading = dbn.EXPERIMENT, **settings: Any
) -> Any:
    """Train a layer of 5 units as the experiments do."""
    training = dbn.Training(dtype=X.dtype.name, **settings)
    reading = dataclasses.replace(reading, n_gen=n_iter)
    *_, step = dbn.train(method, X, 5, training=training, reading=reading, seed=SEED)
    return step.rbm


@pytest.mark.filterwarnings("ignore:X has values from:UserWarning")
@parametrize_with_checks(
    [
        *(
            RBM(n_hidden=4, n_iter=2),
            RBM(n_hidden=4, n_iter=2, method="lea-mvd"),
            DBN(layers=(4, 3), n_iter=2),
        ),
        DBNClassifier(DBN(layers=(8,), n_iter=2), batch_size=20),
    ]
)
def test_conventions_of_scikit_learn(
    estimator: BaseEstimator, check: Callable[[BaseEstimator], None]
) -> None:
    check(estimator)


# ---- one way to train


def test_defaults_are_those_of_the_experiments() -> None:
    stack = dbn.pretrain(V, (5, 3), seed=SEED)
    assert same(
        RBM(5, random_state=SEED).fit(V).parameters_, list(dbn.train("cd", V, 5, seed=SEED))[-1].rbm
    )
    assert all(map(same, DBN((5, 3), random_state=SEED).fit(V).layers_, stack))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", dbn.METHODS)
def test_every_trainer_gives_the_bits_of_the_experiments(method: str, dtype: str) -> None:
    X = V.astype(dtype)
    model = RBM(5, method=method, n_iter=3, random_state=SEED).fit(X)
    expected = trained(method, X, 3)
    assert same(model.parameters_, expected)
    learned = (model.components_.T, model.intercept_visible_, model.intercept_hidden_)
    assert same(learned, expected)
    assert model.transform(X).dtype == dtype


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("cd", {"learning_rate": 0.02}),
        ("cd", {"batch_size": 7}),
        ("cd", {"cd_steps": 3}),
        ("cd", {"persistent": True}),
        ("cd", {"momentum": 0.1}),
        ("cd", {"final_momentum": 0.1, "momentum_epochs": 1}),
        ("cd", {"weight_decay": 0.1}),
        ("cd", {"initial_weights": "uniform"}),
        ("cd", {"weight_scale": 0.01}),
        ("cd", {"visible_biases": "data"}),
        ("lea-mvd", {"visible_biases": "data"}),
        ("lea-mvd", {"x0": "batch", "x0_batches": 2, "batch_size": 7}),
        ("lea-mvd", {"sigma0": 0.01}),
        ("lea-mvd", {"n_elite": 6}),
        ("lea-mvd", {"x0": "batch", "batch_size": 7}),
        ("lea-mvd", {"x0_epochs": 2}),
        ("lea-mvd", {"x0": "none", "x0_limit": 1.0}),
        ("lea-mvd", {"reading": Reading(population_size=12, exponent=2)}),
    ],
)
def test_every_setting_reaches_the_training(method: str, changes: dict[str, Any]) -> None:
    found = RBM(5, method=method, n_iter=3, random_state=SEED, **changes).fit(V).parameters_
    assert same(found, trained(method, V, 3, **changes))
    assert not same(found, trained(method, V, 3))


@pytest.mark.parametrize("method", ["cd", "lea-mvd"])
def test_scalars_of_numpy_are_taken_as_in_grids(method: str) -> None:
    tuning = {
        "n_iter": np.int64(2),
        "learning_rate": np.float32(0.25),
        "momentum": np.float32(0.25),
    }
    typed = tuning | {
        "batch_size": np.uint8(7),
        "random_state": np.int64(3),
        "persistent": np.True_,
    }
    typed |= {
        name: np.str_(value)
        for name, value in (("method", method), ("x0", "batch"), ("backend", "numpy"))
    }
    found = []
    for kind in (lambda value: value, lambda value: value.item()):
        one, other = (
            {name: kind(value) for name, value in given.items()} for given in (typed, tuning)
        )
        stack = DBN(np.array([3, 2]), features=kind(np.str_("bits")), **one)
        model = DBNClassifier(
            stack, batch_size=kind(np.int64(7)), random_state=kind(np.int64(3)), **other
        ).fit(V, Y)
        found.append([RBM(kind(np.int64(3)), **one).fit_transform(V), model.predict_proba(V)])
    assert all(map(np.array_equal, *found))


@pytest.mark.parametrize("features", dbn.FEATURES)
def test_a_network_is_a_stack_of_the_experiments(features: Any) -> None:
    settings: dict[str, Any] = {
        "training": dbn.Training(dtype="float64"),
        "reading": Reading(n_gen=3),
    }
    stack = dbn.pretrain(V, (5, 3), method="lea-mvd", features=features, seed=SEED, **settings)
    model = DBN((5, 3), method="lea-mvd", n_iter=3, features=features, random_state=SEED).fit(V)
    assert all(map(same, model.layers_, stack))
    assert np.array_equal(model.transform(V), dbn.layer_input(stack, V))
    assert np.array_equal(model.inverse_transform(model.transform(V)), dbn.reconstruct(stack, V))


def test_parameters_are_those_of_a_training_and_of_scikit_learns_machine() -> None:
    own, stacks, other = (inspect.signature(kind).parameters for kind in (RBM, DBN, BernoulliRBM))
    fields = {
        field.name: field.default
        for field in dataclasses.fields(dbn.Training)
        if field.name != "dtype"
    }
    fields["n_iter"] = dbn.EXPERIMENT.n_gen
    for parameters in (own, stacks):
        assert {name: parameters[name].default for name in fields} == fields
    assert other.keys() - own.keys() == {"n_components"}
    first, *others = own.values()
    assert (first.name, first.kind) == ("n_hidden", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    assert {parameter.kind for parameter in others} == {inspect.Parameter.KEYWORD_ONLY}
    layers, *others = stacks.values()
    assert layers.name == "layers"
    assert {parameter.name for parameter in others} == own.keys() - {"n_hidden"} | {"features"}


# ---- what is learned


def test_hidden_probabilities_and_scores_are_the_formulas() -> None:
    model = RBM(5, n_iter=3, random_state=SEED).fit(V)
    W, b, c = model.components_.T, model.intercept_visible_, model.intercept_hidden_
    H = expit(c + V @ W)
    np.testing.assert_allclose(model.transform(V), H, rtol=1e-12)
    errors = ((V - expit(b + H @ W.T)) ** 2).sum(axis=1)
    np.testing.assert_allclose(model.score_samples(V), -errors, rtol=1e-12)
    mean_field = reconstruction_errors(model.parameters_, V, seed=0).mean_field
    assert -model.score_samples(V).sum() == pytest.approx(mean_field, rel=1e-12)
    np.testing.assert_allclose(model.inverse_transform(H), expit(b + H @ W.T), rtol=1e-12)
    assert RBM(5, n_iter=1).fit(V.astype("f4")).inverse_transform(H.astype("f4")).dtype == "float32"
    with pytest.raises(ValueError, match=r"X must have shape \(m, 5\), got \(45, 4\)"):
        model.inverse_transform(H[:, 1:])


def test_a_gibbs_chain_has_the_models_distribution() -> None:
    """Beside all states of a small model; the type is that of `BernoulliRBM`."""
    X = (np.random.default_rng(3).random((60, 3)) < [0.9, 0.5, 0.2]).astype(float)
    model = RBM(2, n_iter=30, weight_scale=2, weight_decay=0, random_state=SEED).fit(X)
    states = np.arange(8)[:, None] >> np.arange(3) & 1
    P = np.exp(-model.parameters_.free_energy(states) - model.parameters_.log_partition())
    v = np.zeros((20_000, 3))
    for _ in range(30):
        v = model.gibbs(v)
    np.testing.assert_allclose(
        np.bincount(v @ [1, 2, 4]) / len(v), P, atol=5 * np.sqrt(0.25 / len(v))
    )
    assert v.dtype == BernoulliRBM(2, n_iter=1).fit(X).gibbs(X).dtype


def test_a_gibbs_step_draws_the_hidden_units_as_bits() -> None:
    """One that is on or off as often turns both pixels on or both off; at one half either could be
    on alone.
    """
    model = RBM(1, n_iter=1, random_state=SEED).fit([[0.0, 1.0]])
    model.layers_ = [RBMParameters(np.full((2, 1), 40.0), np.full(2, -20.0), np.full(1, -40.0))]
    drawn = model.gibbs(np.tile([1.0, 0.0], (200, 1)))
    assert np.array_equal(drawn[:, 0], drawn[:, 1])
    assert 60 < drawn[:, 0].sum() < 140  # more than five standard deviations


def test_gibbs_steps_go_on_and_begin_anew_after_a_fit() -> None:
    model, other, another = (RBM(5, n_iter=2, random_state=SEED).fit(V) for _ in "abc")
    first, second = model.gibbs(V), model.gibbs(V)
    assert not np.array_equal(first, second)
    assert np.array_equal(first, other.gibbs(V))
    stream = np.random.SeedSequence(SEED, spawn_key=(random_streams.GIBBS,))
    rng = np.random.default_rng(stream)
    H = model.parameters_.sample_hidden(V, rng)
    assert np.array_equal(first, model.parameters_.sample_visible(H, rng))
    assert np.array_equal(second, pickle.loads(pickle.dumps(other)).gibbs(V))
    assert np.array_equal(first, model.fit(V).gibbs(V))
    assert not np.array_equal(first, another.set_params(random_state=1).gibbs(V))


def test_columns_in_another_order_are_refused_wherever_images_go_in() -> None:
    frame = pd.DataFrame(V).rename(columns="p{}".format)
    other = frame[frame.columns[::-1]]
    model = RBM(5, n_iter=1, random_state=SEED).fit(frame)
    assert np.array_equal(model.gibbs(frame), RBM(5, n_iter=1, random_state=SEED).fit(V).gibbs(V))
    model.gibbs(model.gibbs(frame))  # whose bits have no names, and need none
    classifiers = (
        DBNClassifier(FrozenEstimator(one), n_iter=1)
        for one in (model, DBN((4,), n_iter=1).fit(frame))
    )
    for call in (model.gibbs, *(lambda X, one=one: one.fit(X, Y) for one in classifiers)):
        call(frame)
        with pytest.raises(ValueError, match="must be in the same order"):
            call(other)


def test_logarithms_of_probabilities() -> None:
    model = DBNClassifier(STACK, **TUNED).fit(V, Y)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(V)), model.predict_proba(V))
    model.network_.intercepts_[-1][:] = [-2000, 0, 2000][-len(model.network_.intercepts_[-1]) :]
    assert np.isneginf(model.predict_log_proba(V)).any()


def test_iterations_done_are_counted() -> None:
    assert RBM(2, n_iter=3).fit(V).n_iter_ == 3
    assert RBM(2, n_iter=3).fit(V).partial_fit(V).partial_fit(V[:5]).n_iter_ == 5
    assert RBM(2).partial_fit(V).n_iter_ == 1
    assert (
        RBM(2, n_iter=3, method="random").fit(V).n_iter_
        == DBN((2, 2), n_iter=3).fit(V).n_iter_
        == 3
    )


@pytest.mark.parametrize("method", ["cd", "lea-mvd"])
def test_functions_below_refuse_what_is_no_probability(method: str) -> None:
    for call in (
        lambda: trained(method, 2 * V, 3),
        lambda: dbn.pretrain(2 * V, (5, 3), method=method),
    ):
        with pytest.raises(ValueError, match=r"V must lie in \[0, 1\]"):
            call()


@pytest.mark.parametrize(
    "model",
    [
        *(
            RBM(2, n_iter=2),
            RBM(2, n_iter=2, method="random"),
            DBN((3, 2), n_iter=2),
            DBNClassifier(n_iter=2),
        ),
        DBNClassifier(DBN((3, 2), n_iter=2).fit(V).layers_, n_iter=2),
    ],
)
def test_numbers_outside_the_unit_interval_are_warned_of_once(model: Any) -> None:
    model.fit(V - V.min() - 1e-7, Y)
    model.fit(V / V.max() + 1e-7, Y)
    for X, found in ((255 * np.rint(V), "from 0 to 255"), (V - 0.5, r"from -0\.\d+ to 0\.\d+")):
        with pytest.warns(UserWarning, match=f"{found}.*MinMaxScaler") as told:
            model.fit(X, Y)
        assert len(told) == 1
        assert np.isfinite([rbm.W.sum() for rbm in model.layers_]).all()
    if isinstance(model, RBM) and model.method == "cd":
        with pytest.warns(UserWarning, match="MinMaxScaler"):
            begun = clone(model).partial_fit(X)
        begun.partial_fit(X)  # an epoch more does not warn again


@pytest.mark.parametrize("model", [RBM(2, n_iter=1), DBN((2,), n_iter=1)])
def test_a_hundredth_outside_the_unit_interval_is_warned_of_too(model: Any) -> None:
    for low, high in ((-0.01, 1.0), (0.0, 1.01)):
        X = np.clip(V, 0.1, 0.9)
        X[3, 4] = low
        X[4, 3] = high
        with pytest.warns(UserWarning, match=f"from {low:g} to {high:g}, where"):
            model.fit(X)


@pytest.mark.parametrize("method", ["cd", "random"])
def test_the_generations_of_a_reading_are_not_used(method: str) -> None:
    for model in (RBM(2), DBN((2, 2))):
        model.set_params(method=method, n_iter=3, random_state=SEED)
        plain = model.fit(V).transform(V)
        model.set_params(reading=Reading(n_gen=7))
        assert np.array_equal(model.fit(V).transform(V), plain)
        assert model.n_iter_ == 3


@pytest.mark.parametrize(
    ("name", "value"), [("backend", "jax"), ("device", "cuda"), ("precision", "bfloat16")]
)
def test_where_an_error_is_computed_is_heard(name: str, value: str) -> None:
    for model in (RBM(2, method="random"), DBN((2,), method="random")):
        with pytest.raises(ValueError, match=f"^{name} must be"):
            model.set_params(**{name: value}).fit(V)


def test_features_have_names() -> None:
    model = RBM(2, n_iter=1).fit(V)
    assert model.get_feature_names_out().tolist() == ["rbm0", "rbm1"]
    assert model.set_output(transform="pandas").transform(V).columns.tolist() == ["rbm0", "rbm1"]
    assert DBN((4, 1), n_iter=1).fit(V).get_feature_names_out().tolist() == ["dbn0"]


def _finished(text: str, count: int) -> set[str]:
    """Return the names of the bars that came to their end, which a slow machine draws twice."""
    return set(re.findall(rf"(\S+): 100%\S* {count}/{count} ", text))


def test_progress_is_shown_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    RBM(2, n_iter=3).fit(V)
    assert capsys.readouterr().err == ""
    RBM(2, n_iter=3, verbose=1).fit(V)
    assert _finished(capsys.readouterr().err, 3) == {"CD"}
    DBN((3, 2), method="random", n_iter=4, verbose=1).fit(V)
    assert _finished(capsys.readouterr().err, 5) == {"1", "2"}
    DBNClassifier(STACK, n_iter=3, verbose=1).fit(V, Y)
    assert _finished(capsys.readouterr().err, 3) == {"fine-tuning"}


# ---- one epoch more


@pytest.mark.parametrize("persistent", [False, True])
def test_epochs_one_by_one_are_the_bits_of_a_fit(persistent: bool) -> None:
    settings: dict[str, Any] = {
        "batch_size": 8,
        "persistent": persistent,
        "momentum_epochs": 2,
        "random_state": SEED,
    }
    whole, begun, model = (RBM(5, n_iter=n, **settings) for n in (4, 3, 1))
    whole.fit(V)
    for _ in range(4):
        model = pickle.loads(pickle.dumps(model.partial_fit(V)))
    assert same(model.parameters_, whole.parameters_)
    assert same(begun.fit(V).partial_fit(V).parameters_, whole.parameters_)


@pytest.mark.parametrize("persistent", [False, True])
def test_an_epoch_more_takes_other_images(persistent: bool) -> None:
    model = RBM(5, batch_size=20, persistent=persistent, random_state=SEED)
    for rows in (7, 45, 1, 30):
        before = model.partial_fit(V).components_
        assert not np.array_equal(model.partial_fit(V[:rows]).components_, before)
    assert model.partial_fit(V.astype("float32")).components_.dtype == "float64", (
        "that of the first images"
    )
    with pytest.raises(ValueError, match="X has 8 features, but RBM is expecting 9"):
        model.partial_fit(V[:, 1:])


def test_an_epoch_more_is_by_the_settings_of_its_time() -> None:
    then: dict[str, Any] = {
        "learning_rate": 0.02,
        "momentum": 0.1,
        "batch_size": 7,
        "persistent": True,
        "cd_steps": 2,
    }
    cd = ContrastiveDivergence(V, 5, seed=SEED)
    cd.fit(2)
    cd.go_on_with(V, CDSettings(**then))
    model = RBM(5, n_iter=2, random_state=SEED).fit(V).set_params(**then)
    assert same(model.partial_fit(V).parameters_, cd.epoch())


def test_an_epoch_has_as_many_updates_as_mini_batches_of_the_size_that_is_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes, update = [], ContrastiveDivergence._update
    monkeypatch.setattr(
        ContrastiveDivergence,
        "_update",
        lambda cd, batch, *rest: sizes.append(len(batch)) or update(cd, batch, *rest),
    )
    model = RBM(5, n_iter=1, batch_size=20, random_state=SEED).fit(V)
    for size in (11, 30):
        model.set_params(batch_size=size).partial_fit(V)
    assert sizes == [20, 20, 5, 11, 11, 11, 11, 1, 30, 15]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_hidden", 6),
        ("initial_weights", "uniform"),
        ("weight_scale", 2),
        ("visible_biases", "data"),
        ("random_state", 1),
        ("learning_rate", 1e308),
    ],
)
def test_what_a_training_cannot_go_on_with_is_refused_and_changes_nothing(
    name: str, value: Any
) -> None:
    model, twin = (RBM(5, batch_size=5, random_state=SEED).partial_fit(V) for _ in "ab")
    with pytest.raises(ValueError, match=name):
        model.set_params(**{name: value}).partial_fit(V)
    model.set_params(**{name: twin.get_params()[name]}).partial_fit(V)
    assert same(model.parameters_, twin.partial_fit(V).parameters_)


def test_an_optimizer_has_no_epoch_more() -> None:
    model = RBM(5, method="lea-mvd", n_iter=2, random_state=SEED).fit(V)
    with pytest.raises(AttributeError) as told:
        model.partial_fit(V)
    assert str(told.value.__cause__) == "partial_fit needs method='cd', got 'lea-mvd'"
    begun = model.set_params(method="cd").partial_fit(V)
    assert same(begun.parameters_, RBM(5, random_state=SEED).partial_fit(V).parameters_), (
        "from the start"
    )


# ---- a classifier

STACK = dbn.pretrain(V, (6, 4), reading=Reading(n_gen=3), seed=SEED)
TUNED = {"n_iter": 4, "learning_rate": 0.8, "batch_size": 8, "random_state": SEED}
SECTION_8 = {"epochs": "n_iter", "tuning_rate": "learning_rate", "seed": "random_state"}
SECTION_8 |= {name: name for name in ("batch_size", "momentum")}


def tuned(**changes: Any) -> tuple[Any, list[float]]:
    """Fine-tune a stack as Section 8 does."""
    settings: dict[str, Any] = {"epochs": 4, "tuning_rate": 0.8, "batch_size": 8, "seed": SEED}
    steps = list(dbn.fine_tune(STACK, V, Y, **(settings | changes)))
    return steps[-1][0], [loss for _, loss in steps]


@pytest.mark.parametrize(
    "changes", [{}, *({n: v} for n, v in zip(SECTION_8, (7, 0.1, 7, 7, 0.1), strict=True))]
)
def test_a_classifier_is_the_network_of_section_8(changes: dict[str, Any]) -> None:
    network, losses = tuned(**changes)
    model = DBNClassifier(
        STACK, **TUNED | {SECTION_8[name]: value for name, value in changes.items()}
    ).fit(V, Y)
    assert np.array_equal(model.predict_proba(V), network.predict_proba(V))
    assert np.array_equal(model.predict(V), network.predict(V))
    assert (model.loss_curve_, model.n_iter_, model.n_features_in_) == (losses, len(losses), 9)
    assert (losses == tuned()[1]) == (not changes)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert model.score(V, Y) == np.mean(network.predict(V) == Y)


def test_a_classifier_that_is_told_nothing_is_tuned_by_these_numbers() -> None:
    network, losses = tuned(epochs=50, tuning_rate=0.2, batch_size=100, momentum=0.9)
    model = DBNClassifier(STACK, random_state=SEED).fit(V, Y)
    assert model.loss_curve_ == losses
    assert np.array_equal(model.predict_proba(V), network.predict_proba(V))


def test_two_classes_share_one_logistic_unit() -> None:
    model = DBNClassifier(STACK, n_iter=2, random_state=SEED).fit(V, Y == "low")
    W, c = model.network_.coefs_, model.network_.intercepts_
    P = expit(c[2] + expit(c[1] + expit(c[0] + V @ W[0]) @ W[1]) @ W[2])
    np.testing.assert_allclose(model.predict_proba(V), np.hstack([1 - P, P]))
    assert model.loss_curve_[0] == pytest.approx(np.log(2)), (
        "of one mini-batch, before the first update"
    )
    assert np.array_equal(model.predict(V), P[:, 0] > 0.5)


def test_a_stack_is_trained_by_the_first_seed_or_taken_as_pretrained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted = DBN((6, 4), n_iter=3, random_state=SEED).fit(V)
    for given in (DBN((6, 4), n_iter=3), FrozenEstimator(fitted), fitted.layers_, tuple(STACK)):
        model = clone(DBNClassifier(given, **TUNED)).fit(V, Y)
        assert model.loss_curve_ == tuned()[1]
        assert all(map(same, fitted.layers_ + model.layers_, STACK + STACK))
        # clones of the others are not trained again
        monkeypatch.setattr(estimators, "pretrain", None)
    monkeypatch.undo()
    for own in (
        *(DBN((6, 4), n_iter=3, random_state=seed) for seed in (0, 5)),
        RBM(6, random_state=5),
    ):
        model = DBNClassifier(own, **TUNED).fit(V, Y)
        assert not hasattr(own, "layers_")
        assert all(map(same, model.layers_, own.fit(V).layers_))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_arithmetic_is_that_of_the_images_fitted_on(dtype: str) -> None:
    model = DBNClassifier(STACK, **TUNED).fit(V.astype(dtype), Y)
    assert {a.dtype for a in model.network_.coefs_ + model.network_.intercepts_} == {
        np.dtype(dtype)
    }
    assert model.predict_proba(V).dtype == model.predict_proba(V.astype("float32")).dtype == dtype


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        (
            {"dbn": FrozenEstimator(DBN())},
            TypeError,
            "dbn must be a DBN or RBM, a FrozenEstimator of a fitted one",
        ),
        ({"dbn": []}, TypeError, "dbn must be"),
        ({"dbn": STACK[1:]}, ValueError, r"X must have shape \(m, 6\), as dbn, got \(45, 9\)"),
        ({"dbn": STACK[:1] * 2}, ValueError, r"\(m, 9\), got \(1, 6\)"),
        *(
            ({name: 0}, ValueError, f"{name} must be")
            for name in ("n_iter", "learning_rate", "batch_size")
        ),
        ({"momentum": 1}, ValueError, "momentum must be .* < 1"),
    ],
)
def test_what_a_classifier_cannot_use_is_refused(
    changes: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        DBNClassifier(**{"dbn": STACK, **changes}).fit(V, Y)


def test_one_class_is_too_few_and_no_training_goes_on() -> None:
    with pytest.raises(ValueError, match="at least two classes, got one class: 'low'"):
        DBNClassifier(STACK).fit(V, ["low"] * 45)
    assert not hasattr(DBNClassifier, "partial_fit")
    assert not DBNClassifier().get_params().keys() & {"early_stopping", "warm_start"}


def test_fine_tuned_networks_multiply_on_one_thread() -> None:
    """So that bits do not depend on the number of threads."""
    model = DBNClassifier(STACK, **TUNED).fit(V, Y)

    def threads(*_: Any) -> set[int]:
        return {part["num_threads"] for part in threadpool_info() if part["user_api"] == "blas"}

    model.network_.fit = model.network_.predict_proba = threads
    with threadpool_limits(2, user_api="blas"):
        # none where no library is known
        assert {*dbn.fitted(model.network_, V, Y), *model.predict_proba(V)} <= {1}


# ---- with scikit-learn's tools


@pytest.mark.parametrize(
    "model",
    [
        *(RBM(5, n_iter=2, batch_size=20, random_state=1), DBN((5, 3), n_iter=2, random_state=1)),
        DBNClassifier(n_iter=2, random_state=1),
    ],
)
def test_pickled_bit_for_bit_and_cloned(model: Any) -> None:
    said = "predict_proba" if isinstance(model, DBNClassifier) else "transform"
    again = pickle.loads(pickle.dumps(model.fit(V, Y)))
    assert np.array_equal(getattr(again, said)(V), getattr(model, said)(V))
    assert again.get_params() == model.get_params()
    alive, more = (
        weakref.ref(X := np.concatenate([V] * 10)),
        clone(model).fit(X, np.concatenate([Y] * 10)),
    )
    del X
    assert alive() is None, "no images in it"
    assert len(pickle.dumps(more)) == pytest.approx(len(pickle.dumps(model)), abs=V.nbytes / 10)
    with pytest.raises(NotFittedError):
        getattr(clone(model), said)(V)
    assert np.array_equal(getattr(clone(model).fit(V, Y), said)(V), getattr(model, said)(V))


# ---- random numbers


def drawn(seed: int) -> RBMParameters:
    return RBM(5, n_iter=1, random_state=seed).fit(V).parameters_


def test_a_generator_is_drawn_from() -> None:
    for kind, draw in ((np.random.default_rng, "integers"), (np.random.RandomState, "randint")):
        model, twin = RBM(5, n_iter=1, random_state=kind(3)), kind(3)
        for _ in range(2):  # each training draws another seed
            assert same(
                model.fit(V).parameters_, drawn(getattr(twin, draw)(2**64, dtype=np.uint64))
            )


def test_without_a_random_state_numpys_global_one_is_drawn_from() -> None:
    found = []
    for _ in range(2):
        np.random.seed(4)  # noqa: NPY002
        model = RBM(5, n_iter=1)
        found += [model.fit(V).parameters_, model.fit(V).parameters_]
    assert same(found[0], found[2])
    assert same(found[1], found[3])
    assert not same(found[0], found[1])


@pytest.mark.parametrize("method", ["fit", "partial_fit", "transform", "score_samples"])
def test_sparse_images_are_refused(method: str) -> None:
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        getattr(RBM(2, n_iter=1).fit(V), method)(csr_array(V))


# ---- the page on them


def numbers(line: str) -> list[float]:
    """Return what a line prints with a point, in order."""
    return [float(text) for text in re.findall(r"-?\d+\.\d+", line)]


def test_the_page_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 10
    said = []
    with one_blas_thread():  # on busy processors regressions take minutes with more
        for block in blocks:
            exec(block, names)
            said.append(capsys.readouterr().out.splitlines())
    (
        _,
        learned,
        classified,
        stacked,
        finer,
        tuned_once,
        drawn_digits,
        compared,
        likely,
        saved,
    ) = said
    for (line,) in (learned, stacked):
        error, constant = numbers(line)
        assert 0 < 2 * error < constant, "a constant image is worse"
    assert min(numbers(classified[0])) > 0.9
    assert numbers(finer[0])[0] > 0.95
    assert tuned_once[0].startswith("{'learning_rate': ")
    assert float(drawn_digits[0].split("]")[1]) > 0.7, "how sure the classifier is of them"
    assert plt.imread(tmp_path / "digits.png").shape == (8, 80, 4)
    errors = {line.split()[0]: float(line.split()[1]) for line in compared}
    assert list(errors) == ["cd", "lea-mvd", "sep-cma-es", "random"]
    assert 2 * errors["cd"] < min(error for method, error in errors.items() if method != "cd"), (
        "lowest by far"
    )
    estimate, error, independent = numbers(likely[0])
    assert independent + 10 * error < estimate < 0, "independent pixels are the least"
    assert saved == ["True"]
