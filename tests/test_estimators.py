"""Estimators by scikit-learn's conventions: its own checks, and that they are what the experiments train."""

import dataclasses
import inspect
import pickle
import re
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.neural_network import BernoulliRBM
from sklearn.utils.estimator_checks import parametrize_with_checks

from leamvd._support.threads import one_blas_thread
from leamvd.networks import DBN, RBM, dbn
from leamvd.networks.contrastive_divergence import CDSettings, ContrastiveDivergence
from leamvd.networks.objective import reconstruction_errors
from leamvd.networks.rbm import RBMParameters
from leamvd.optimizers.reading import Reading

PAGE = (Path(__file__).parents[1] / "book" / "train_rbm.md").read_text(encoding="utf-8")
SEED = 2**63 + 5
V = np.random.default_rng(0).random((45, 9))


def same(a: Any, b: Any) -> bool:
    """Return whether two layers, or two stacks, have the same bits."""
    return all(p.dtype == q.dtype and np.array_equal(p, q) for p, q in zip(a, b, strict=True))


def trained(method: str, X: np.ndarray, n_iter: int, reading: Reading = dbn.EXPERIMENT, **settings: Any) -> Any:
    """Train a layer of 5 units as the experiments do."""
    training = dbn.Training(dtype=X.dtype.name, **settings)
    reading = dataclasses.replace(reading, n_gen=n_iter)
    *_, step = dbn.train(method, X, 5, training=training, reading=reading, seed=SEED)
    return step.rbm


@parametrize_with_checks(
    [RBM(n_hidden=4, n_iter=2), RBM(n_hidden=4, n_iter=2, method="lea-mvd"), DBN(layers=(4, 3), n_iter=2)]
)
def test_conventions_of_scikit_learn(estimator: BaseEstimator, check: Callable[[BaseEstimator], None]) -> None:
    check(estimator)


# ---- one way to train


def test_defaults_are_those_of_the_experiments() -> None:
    stack = dbn.pretrain(V, (5, 3), seed=SEED)
    assert same(RBM(5, random_state=SEED).fit(V).parameters_, list(dbn.train("cd", V, 5, seed=SEED))[-1].rbm)
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
        ("cd", {"learning_rate": 0.02}), ("cd", {"batch_size": 7}), ("cd", {"cd_steps": 3}),
        ("cd", {"persistent": True}), ("cd", {"momentum": 0.1}), ("cd", {"final_momentum": 0.1, "momentum_epochs": 1}),
        ("cd", {"weight_decay": 0.1}),
        ("cd", {"initial_weights": "uniform"}), ("cd", {"weight_scale": 0.01}), ("lea-mvd", {"sigma0": 0.01}),
        ("lea-mvd", {"n_elite": 6}), ("lea-mvd", {"x0": "batch", "batch_size": 7}), ("lea-mvd", {"x0_epochs": 2}),
        ("lea-mvd", {"x0": "none", "x0_limit": 1.0}), ("lea-mvd", {"reading": Reading(population_size=12, exponent=2)}),
    ],
)  # fmt: skip
def test_every_setting_reaches_the_training(method: str, changes: dict[str, Any]) -> None:
    found = RBM(5, method=method, n_iter=3, random_state=SEED, **changes).fit(V).parameters_
    assert same(found, trained(method, V, 3, **changes))
    assert not same(found, trained(method, V, 3))


@pytest.mark.parametrize("features", dbn.FEATURES)
def test_a_network_is_a_stack_of_the_experiments(features: Any) -> None:
    settings: dict[str, Any] = {"training": dbn.Training(dtype="float64"), "reading": Reading(n_gen=3)}
    stack = dbn.pretrain(V, (5, 3), method="lea-mvd", features=features, seed=SEED, **settings)
    model = DBN((5, 3), method="lea-mvd", n_iter=3, features=features, random_state=SEED).fit(V)
    assert all(map(same, model.layers_, stack))
    assert np.array_equal(model.transform(V), dbn.layer_input(stack, V))
    assert np.array_equal(model.inverse_transform(model.transform(V)), dbn.reconstruct(stack, V))


def test_parameters_are_those_of_a_training_and_of_scikit_learns_machine() -> None:
    own, stacks, other = (inspect.signature(kind).parameters for kind in (RBM, DBN, BernoulliRBM))
    fields = {field.name: field.default for field in dataclasses.fields(dbn.Training) if field.name != "dtype"}
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


@pytest.mark.parametrize("method", ["cd", "lea-mvd"])
def test_any_finite_numbers_are_taken_and_by_the_functions_below_refused(method: str) -> None:
    X = np.random.default_rng(1).normal(0, 3, (45, 9))
    for model in (RBM(5, method=method, n_iter=3), DBN((5, 3), method=method, n_iter=3)):
        assert np.isfinite(model.fit_transform(X)).all()
    with pytest.raises(ValueError, match=r"V must lie in \[0, 1\]"):
        trained(method, X, 3)
    with pytest.raises(ValueError, match=r"V must lie in \[0, 1\]"):
        dbn.pretrain(X, (5, 3), method=method)


def test_features_have_names() -> None:
    model = RBM(2, n_iter=1).fit(V)
    assert model.get_feature_names_out().tolist() == ["rbm0", "rbm1"]
    assert model.set_output(transform="pandas").transform(V).columns.tolist() == ["rbm0", "rbm1"]
    assert DBN((4, 1), n_iter=1).fit(V).get_feature_names_out().tolist() == ["dbn0"]


def test_progress_is_shown_where_it_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    RBM(2, n_iter=3).fit(V)
    assert capsys.readouterr().err == ""
    RBM(2, n_iter=3, verbose=1).fit(V)
    assert re.findall(r"(\S+): 100%\S* 3/3 ", capsys.readouterr().err) == ["CD"]
    DBN((3, 2), method="random", n_iter=4, verbose=1).fit(V)
    assert re.findall(r"layer (\d): 100%\S* 5/5 ", capsys.readouterr().err) == ["1", "2"]


# ---- one epoch more


@pytest.mark.parametrize("persistent", [False, True])
def test_epochs_one_by_one_are_the_bits_of_a_fit(persistent: bool) -> None:
    settings: dict[str, Any] = {"batch_size": 8, "persistent": persistent, "momentum_epochs": 2, "random_state": SEED}
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
    assert model.partial_fit(V.astype("float32")).components_.dtype == "float64", "that of the first images"
    with pytest.raises(ValueError, match="X has 8 features, but RBM is expecting 9"):
        model.partial_fit(V[:, 1:])


def test_an_epoch_more_is_by_the_settings_of_its_time() -> None:
    then: dict[str, Any] = {"learning_rate": 0.02, "momentum": 0.1, "batch_size": 7, "persistent": True, "cd_steps": 2}
    cd = ContrastiveDivergence(V, 5, seed=SEED)
    cd.fit(2)
    cd.go_on_with(V, CDSettings(**then))
    model = RBM(5, n_iter=2, random_state=SEED).fit(V).set_params(**then)
    assert same(model.partial_fit(V).parameters_, cd.epoch())


@pytest.mark.parametrize(
    ("name", "value"), [("n_hidden", 6), ("weight_scale", 2), ("random_state", 1), ("learning_rate", 1e308)]
)
def test_what_a_training_cannot_go_on_with_is_refused_and_changes_nothing(name: str, value: Any) -> None:
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
    assert same(begun.parameters_, RBM(5, random_state=SEED).partial_fit(V).parameters_), "from the start"


# ---- with scikit-learn's tools


@pytest.mark.parametrize(
    "model", [RBM(5, n_iter=2, batch_size=20, random_state=1), DBN((5, 3), n_iter=2, random_state=1)]
)
def test_pickled_bit_for_bit_and_cloned(model: Any) -> None:
    again = pickle.loads(pickle.dumps(model.fit(V)))
    assert np.array_equal(again.transform(V), model.transform(V))
    assert again.get_params() == model.get_params()
    alive, more = weakref.ref(X := np.concatenate([V] * 10)), clone(model).fit(X)
    del X
    assert alive() is None, "no images in it"
    assert len(pickle.dumps(more)) == pytest.approx(len(pickle.dumps(model)), abs=V.nbytes / 10)
    with pytest.raises(NotFittedError):
        clone(model).transform(V)
    assert np.array_equal(clone(model).fit(V).transform(V), model.transform(V))


# ---- random numbers


def drawn(seed: int) -> RBMParameters:
    return RBM(5, n_iter=1, random_state=seed).fit(V).parameters_


def test_a_generator_is_drawn_from() -> None:
    for kind, draw in ((np.random.default_rng, "integers"), (np.random.RandomState, "randint")):
        model, twin = RBM(5, n_iter=1, random_state=kind(3)), kind(3)
        for _ in range(2):  # each training draws another seed
            assert same(model.fit(V).parameters_, drawn(getattr(twin, draw)(2**64, dtype=np.uint64)))


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


def test_the_page_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 8
    said = []
    with one_blas_thread():  # on busy processors regressions take minutes with more
        for block in blocks:
            exec(block, names)
            said.append(capsys.readouterr().out.splitlines())
    _, learned, classified, stacked, searched, compared, likely, saved = said
    assert learned[0].startswith("(450, 100) (100, 64) -")
    assert min(map(float, classified[0].split())) > 0.9
    assert stacked[0].startswith("[(64, 100), (100, 50)] ")
    assert searched[0].startswith("{'rbm__learning_rate': ")
    errors = {line.split()[0]: float(line.split()[1]) for line in compared}
    assert list(errors) == ["cd", "lea-mvd", "sep-cma-es", "random"]
    assert 2 * errors["cd"] < min(error for method, error in errors.items() if method != "cd"), "lowest by far"
    estimate, error, independent = map(float, likely[0].split())
    assert independent + 10 * error < estimate < 0, "independent pixels are the least"
    assert saved == ["True"]
